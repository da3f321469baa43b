"""Selections over EleutherAI's lm-eval, on the real program: its command line, its results, local
tasks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lm_eval", reason="make test-integrations installs lm-eval")
pytest.importorskip("transformers", reason="make test-integrations installs transformers")

import scrimp
from scrimp.checkpoint_selection.score_files import read_results_folder, sample_costs

SIZES = {"short": 3, "long": 6}

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


def write_tasks(folder: Path) -> None:
    """Two tasks and the group of both."""
    folder.mkdir()
    for name, count in SIZES.items():
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
    (folder / "both.yaml").write_text(
        "group: both\ntask: [short, long]\n"
        "aggregate_metric_list: [{metric: acc, aggregation: mean, weight_by_size: true}]\n"
    )


def write_checkpoints(folder: Path) -> None:
    """Two small models that have learned nothing."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator(["a b c d"], vocab_size=260, special_tokens=["<end>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pairs._tokenizer, eos_token="<end>")
    config = GPT2Config(vocab_size=260, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    config.bos_token_id = config.eos_token_id = 0
    for step in (10, 20):
        GPT2LMHeadModel(config).save_pretrained(folder / f"step-{step}")
        tokenizer.save_pretrained(folder / f"step-{step}")


def run(folder: Path, *words: str) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment["HF_DATASETS_CACHE"] = str(folder / "cache")
    subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, check=True, timeout=600
    )


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
