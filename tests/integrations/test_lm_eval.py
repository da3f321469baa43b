"""Selections over EleutherAI's lm-eval, on the real program: its command line, its results, local
tasks."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

pytest.importorskip("lm_eval", reason="make test-integrations installs lm-eval")
pytest.importorskip("transformers", reason="make test-integrations installs transformers")

import numpy as np

import scrimp
from scrimp.checkpoint_selection.answer_files import read_answers
from scrimp.checkpoint_selection.question_policy import race_of
from scrimp.checkpoint_selection.score_files import read_results_folder, sample_costs
from scrimp.study_log.events import Reported

SIZES = {"short": 3, "long": 6}
QUESTIONS = {"few": 12, "some": 20, "many": 30}

BY_QUESTION = """
name = "asked"
checkpoints = "step-*"
tasks = ["few", "some", "many"]
metric = "acc"
storage = "sqlite:///s.db"
seed = 0

[lm_eval]
model_args = "pretrained={checkpoint}"
include_path = "tasks"
include_defaults = false
device = "cpu"
batch_size = 8

[run]
answers = 0.6
"""

BY_COMMAND = """
name = "commands"
checkpoints = "step-*"
tasks = {few = 12}
command = [
    "{python}", "-m", "lm_eval", "run", "--model", "hf", "--model_args", "pretrained={checkpoint}",
    "--tasks", "{task}", "--include_path", "tasks", "--device", "cpu", "--log_samples",
    "--samples", "{samples}", "--output_path", "out/{checkpoint}/{task}",
]
results = "out/{checkpoint}/{task}"
metric = "acc"
answers = "known.jsonl"
storage = "sqlite:///s.db"
seed = 0

[run]
answers = 6
"""

TOML = """
name = "lm"
checkpoints = "step-*"
tasks = ["short", "long"]
command = [
    "{python}", "-m", "lm_eval", "run", "--model", "hf", "--model_args", "pretrained={checkpoint}",
    "--tasks", "{task}", "--include_path", "tasks", "--device", "cpu",
    "--output_path", "out/{checkpoint}/{task}",
]
results = "out/{checkpoint}/{task}"
metric = "acc"
storage = "sqlite:///s.db"
seed = 0

[run]
share = 0.5
"""


def write_tasks(folder: Path, sizes: Mapping[str, int] = SIZES) -> None:
    """Two tasks and the group of both."""
    folder.mkdir()
    for name, count in sizes.items():
        rows = [
            {"text": "a b", "choices": ["c", "d"], "answer": number % 2} for number in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        (folder / f"{name}.yaml").write_text(
            f"task: {name}\ndataset_path: json\n"
            f"dataset_kwargs: {{data_files: {{test: {folder / name}.jsonl}}}}\n"
            "test_split: test\noutput_type: multiple_choice\n"
            'doc_to_text: "{{text}}"\ndoc_to_choice: "{{choices}}"\ndoc_to_target: answer\n'
            "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]\n"
        )
    if "short" not in sizes:
        return
    (folder / "both.yaml").write_text(
        "group: both\ntask: [short, long]\n"
        "aggregate_metric_list: [{metric: acc, aggregation: mean, weight_by_size: true}]\n"
    )


def write_checkpoints(folder: Path, steps: Sequence[int] = (10, 20)) -> None:
    """Small models that have learned nothing."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator(["a b c d"], vocab_size=260, special_tokens=["<end>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pairs._tokenizer, eos_token="<end>")
    config = GPT2Config(vocab_size=260, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    config.bos_token_id = config.eos_token_id = 0
    for step in steps:
        GPT2LMHeadModel(config).save_pretrained(folder / f"step-{step}")
        tokenizer.save_pretrained(folder / f"step-{step}")


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment["HF_DATASETS_CACHE"] = str(folder / "cache")
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_scrimp_select_run_scores_cells_by_the_harness(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks")
    write_checkpoints(tmp_path)
    (tmp_path / "select.toml").write_text(TOML)
    run(tmp_path, "scrimp", "select", "run", "select.toml")
    scores = scrimp.load_selection("lm", storage=f"sqlite:///{tmp_path}/s.db").scores
    assert scores.seen.sum() == 2 and scores.failed.sum() == 0
    assert (scores.errors[scores.seen] > 0).all()  # the harness's standard errors


def test_groups_are_benchmarks_and_samples_are_costs(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks")
    write_checkpoints(tmp_path)
    words = "lm_eval run --model hf --model_args pretrained=step-10 --tasks both --device cpu"
    run(tmp_path, *words.split(), "--include_path", "tasks", "--output_path", "out/10")
    table = read_results_folder(tmp_path / "out")
    assert list(table.checkpoints) == [10] and list(table.tasks) == ["both"]
    assert sample_costs(tmp_path / "out", ["short", "long", "both"]) == {
        "short": 1.0,
        "long": 2.0,
        "both": 3.0,
    }


@pytest.mark.timeout(1800)
def test_scrimp_select_run_asks_the_harness_by_question(tmp_path: Path) -> None:
    """Six checkpoints on three tasks: each is loaded once per round at most, no question is asked
    twice, and the answers are those of the harness on all questions."""
    write_tasks(tmp_path / "tasks", QUESTIONS)
    write_checkpoints(tmp_path, range(10, 70, 10))
    (tmp_path / "select.toml").write_text(BY_QUESTION)
    printed = run(tmp_path, "scrimp", "select", "run", "select.toml")
    selection = scrimp.load_selection("asked", storage=f"sqlite:///{tmp_path}/s.db")
    race = race_of(selection.history)[1]
    best = selection.recommend()
    assert best.asked == race.counts.sum() > 100 and best.asked <= 0.6 * 6 * 62
    loads = printed.count("scrimp: loading checkpoint")
    plan = sum(len(each.rows) for each in race.past_rounds)
    parts = len([event for event in selection.history.events if isinstance(event, Reported)])
    # Every other round begins with the checkpoint in memory.
    assert 6 <= loads < plan < parts
    # The harness on all questions of a task, by its own command line.
    row, task = np.argwhere(race.counts == race.counts.max())[0]
    name, checkpoint = list(QUESTIONS)[task], f"step-{10 * (row + 1)}"
    words = (
        f"lm_eval run --model hf --model_args pretrained={checkpoint} --tasks {name} --device cpu"
    )
    more = ["--include_path", "tasks", "--log_samples", "--output_path", f"logs/{checkpoint}"]
    run(tmp_path, *words.split(), *more)
    known = read_answers(tmp_path / "logs", "acc")
    asked = race.order[task][: race.counts[row, task]].tolist()
    given = race.book.answers(np.array([row]), task, len(asked))[0].tolist()
    assert known(checkpoint, name, asked) == given
    # Nothing is left to do, so nothing is loaded.
    assert "loading" not in run(tmp_path, "scrimp", "select", "run", "select.toml")


@pytest.mark.timeout(1800)
def test_the_command_line_of_the_harness_by_question(tmp_path: Path) -> None:
    """Answers that are known are not asked again; the others come from its sample logs."""
    write_tasks(tmp_path / "tasks", {"few": 12})
    write_checkpoints(tmp_path)
    known = [
        {"checkpoint": "step-10", "task": "few", "question": question, "score": 1.0}
        for question in range(12)
    ]
    (tmp_path / "known.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known))
    (tmp_path / "select.toml").write_text(BY_COMMAND)
    run(tmp_path, "scrimp", "select", "run", "select.toml")
    selection = scrimp.load_selection("commands", storage=f"sqlite:///{tmp_path}/s.db")
    book = race_of(selection.history)[1].book
    assert book.counts[0].sum() == book.counts[1].sum() == 3
    assert not (tmp_path / "out" / "step-10").exists()
    logged = read_answers(tmp_path / "out", "acc")
    asked = book.order[0][:3].tolist()
    assert book.answers(np.array([1]), 0, 3)[0].tolist() == logged("step-20", "few", asked)
