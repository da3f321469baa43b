"""Train a small language model, then find its best checkpoint with EleutherAI's lm-eval and a tenth
of the evaluations.

    python examples/checkpoints/language_model.py FOLDER [STEPS] [--full]

The text at hand is the source code of Python's standard library: the first part of each of twelve
modules is for training, and the rest makes a task of lm-eval each, a local YAML file: in which of
four lines do the words stand in their order? Training saves 40 checkpoints. scrimp picks one with
48 of the 480 evaluations; ``--full`` evaluates all of them to say what that has cost. Also in the
folder then: ``select.toml``, the same as commands (``scrimp select run select.toml``), and
pictures. Run again, it goes on.

Needs torch, transformers and lm-eval.
"""

import json
import random
import sys
import sysconfig
import time
from functools import cache
from pathlib import Path

import scrimp

AREAS = ["argparse", "ast", "configparser", "difflib", "doctest", "inspect"]
AREAS += ["mailbox", "optparse", "pickle", "statistics", "tarfile", "typing"]
CHECKPOINTS = 40
STEPS = 2000
LETTERS = 24_000  # of each module for training
QUESTIONS = 60
WINDOW = 64
BATCH = 8

COMMAND = """# scrimp select run select.toml
name = "language-model"
checkpoints = "step-*"
tasks = {tasks}
command = [
    "lm_eval", "run", "--model", "hf", "--model_args", "pretrained={{checkpoint}}",
    "--tasks", "{{task}}", "--include_path", "tasks", "--device", "cpu",
    "--output_path", "out/{{checkpoint}}/{{task}}",
]
results = "out/{{checkpoint}}/{{task}}"
metric = "acc"
storage = "sqlite:///commands.db"
seed = 0

[run]
share = 0.1
workers = 2
"""


def sources(area: str) -> tuple[str, str]:
    """The part of a module for training, and the lines that questions are made of."""
    path = Path(sysconfig.get_path("stdlib")) / f"{area}.py"
    text = path.read_text(encoding="utf-8")
    return text[:LETTERS], text[LETTERS:]


def write_tasks(folder: Path) -> None:
    """A YAML file and its questions for every module."""
    tasks = folder / "tasks"
    tasks.mkdir(exist_ok=True)
    for area in AREAS:
        rng = random.Random(area)
        lines = [line for line in sources(area)[1].splitlines() if line.strip()]
        asked = [at for at in range(2, len(lines)) if 5 <= len(set(lines[at].split())) <= 12]
        with (tasks / f"{area}.jsonl").open("w", encoding="utf-8") as file:
            for at in sorted(rng.sample(asked, min(QUESTIONS, len(asked)))):
                right = lines[at]
                wrong = [shuffled(right, rng) for _ in range(3)]
                answer = rng.randrange(4)
                choices = [*wrong[:answer], right, *wrong[answer:]]
                question = {"context": "\n".join(lines[at - 2 : at]) + "\n", "choices": choices}
                file.write(json.dumps({**question, "answer": answer}) + "\n")
        (tasks / f"{area}.yaml").write_text(
            f"task: {area}\n"
            "dataset_path: json\n"
            f"dataset_kwargs: {{data_files: {{test: {tasks.resolve() / area}.jsonl}}}}\n"
            "test_split: test\n"
            "output_type: multiple_choice\n"
            'doc_to_text: "{{context}}"\n'
            'doc_to_choice: "{{choices}}"\n'
            "doc_to_target: answer\n"
            'target_delimiter: ""\n'
            "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]\n",
            encoding="utf-8",
        )


def shuffled(line: str, rng: random.Random) -> str:
    """The words of a line in another order."""
    words = line.split()
    other = words
    while other == words:
        other = rng.sample(words, len(words))
    return line[: len(line) - len(line.lstrip())] + " ".join(other)


def train(folder: Path, steps: int) -> None:
    """A small transformer on bytes in pairs and more; a checkpoint after every fortieth."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    text = "\n".join(sources(area)[0] for area in AREAS)
    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator([text], vocab_size=768, special_tokens=["<end>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pairs._tokenizer, eos_token="<end>", bos_token="<end>", pad_token="<end>"
    )
    data = torch.tensor(pairs.encode(text).ids)
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=768,
            n_positions=2 * WINDOW,
            n_embd=64,
            n_layer=2,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    draw = torch.Generator().manual_seed(0)
    began = time.process_time()
    for step in range(1, steps + 1):
        starts = torch.randint(0, len(data) - WINDOW, (BATCH,), generator=draw)
        batch = torch.stack([data[start : start + WINDOW] for start in starts.tolist()])
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // CHECKPOINTS) == 0:
            model.save_pretrained(folder / f"step-{step}")
            tokenizer.save_pretrained(folder / f"step-{step}")
            spent = time.process_time() - began
            print(f"step {step}: training loss {loss.item():.3f}, {spent:.0f} s", flush=True)
            model.train()
    (folder / "trained").touch()


@cache
def harness(folder: Path):
    """lm-eval with the local tasks."""
    import logging

    from lm_eval.tasks import TaskManager

    logging.disable(logging.WARNING)
    return TaskManager(include_path=str(folder / "tasks"), include_defaults=False)


@cache
def loaded(path: Path):
    """The last checkpoint asked for stays in memory."""
    from lm_eval.models.huggingface import HFLM

    loaded.cache_clear()
    return HFLM(pretrained=str(path), device="cpu", batch_size=32)


def scores(folder: Path, checkpoint: str, tasks: list[str]) -> dict[str, tuple[float, float]]:
    """Accuracy and standard error by task, as ``lm_eval`` on the command line computes them."""
    from lm_eval import simple_evaluate

    found = simple_evaluate(
        loaded(folder / checkpoint),
        tasks=tasks,
        task_manager=harness(folder),
        verbosity="ERROR",
    )["results"]
    return {task: (found[task]["acc,none"], found[task]["acc_stderr,none"]) for task in tasks}


def select(folder: Path, names: list[str]) -> scrimp.Selection:
    """Pick a checkpoint with a tenth of the evaluations."""
    selection = scrimp.create_selection(
        "language-model",
        checkpoints=names,
        tasks=AREAS,
        storage=f"sqlite:///{folder}/scrimp.db",
        load_if_exists=True,
        seed=0,
    )
    selection.stop_when(share=0.1)
    while not selection.finished:
        checkpoint, task = selection.ask()
        score, stderr = scores(folder, checkpoint, [task])[task]
        selection.tell(checkpoint, task, score, stderr=stderr)
        print(f"{checkpoint} on {task}: {score:.3f}", flush=True)
    print(selection.recommend())
    return selection


def compare(folder: Path, names: list[str], chosen: str) -> None:
    """Evaluate everything, and say what the choice has lost."""
    path = folder / "full.json"
    table = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        if name not in table:
            table[name] = {task: one[0] for task, one in scores(folder, name, AREAS).items()}
            path.write_text(json.dumps(table))
    means = {name: sum(row.values()) / len(row) for name, row in table.items()}
    best = max(means, key=lambda name: means[name])
    rank = sorted(means.values(), reverse=True).index(means[chosen]) + 1
    print(f"evaluating everything: {best} is best with {means[best]:.4f}")
    print(f"the choice, {chosen}, has {means[chosen]:.4f}: rank {rank} of {len(names)}")
    print(f"lost {means[best] - means[chosen]:.4f}; the last one loses", end=" ")
    print(f"{means[best] - means[names[-1]]:.4f}")


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--full"]
    folder = Path(words[0] if words else "language-model").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    steps = int(words[1]) if len(words) > 1 else STEPS
    write_tasks(folder)
    (folder / "select.toml").write_text(COMMAND.format(tasks=json.dumps(AREAS)))
    began = time.perf_counter(), time.process_time()
    if not (folder / "trained").exists():
        train(folder, steps)
    trained = time.perf_counter(), time.process_time()
    names = [f"step-{steps * number // CHECKPOINTS}" for number in range(1, CHECKPOINTS + 1)]
    selection = select(folder, names)
    ended = time.perf_counter(), time.process_time()
    for what, start, end in (("training", began, trained), ("selection", trained, ended)):
        print(f"{what}: {end[0] - start[0]:.0f} s, {end[1] - start[1]:.0f} s of processor time")
    for name in ("grid", "curve", "confidence"):
        picture = getattr(scrimp.plots, f"selection_{name}")(selection)
        picture.write_html(folder / f"{name}.html", include_plotlyjs="directory")
    if "--full" in sys.argv:
        compare(folder, names, selection.recommend().checkpoint)
        spent = time.process_time() - ended[1]
        print(f"evaluating everything: {spent:.0f} s of processor time")


if __name__ == "__main__":
    main()
