"""Train a small language model, then find its best checkpoint with EleutherAI's lm-eval, from a few
percent of the answers.

    python examples/checkpoints/language_model.py FOLDER [STEPS] [--full] [--benchmarks]

The text at hand is what Python brings along: six parts of its reference, and six modules of its
standard library. The first half of each is for training, and the other half makes a task of lm-eval,
a local YAML file: which of four lines is the one without two neighbouring words exchanged?

Training begins with as much prose as code, and the prose fades out, as when a general model is
trained on for code. So tasks on code continue rising while those on prose are forgotten, and the best
checkpoint over all of them is not the last. Training saves 40 checkpoints. scrimp picks one from 3 %
of the 72,000 answers; with ``--benchmarks`` it runs whole tasks instead, 48 of the 480. ``--full``
asks everything to say what that has cost, and leaves the table in ``scores.csv``. Also in the folder
then: ``select.toml``, the same as commands (``scrimp select run select.toml``), and pictures. Run it
again to resume.

Needs torch, transformers and lm-eval.
"""

import csv
import json
import random
import sys
import sysconfig
import time
from itertools import pairwise
from pathlib import Path

import scrimp

PROSE = {
    "classes": ["specialnames"],
    "containers": ["typesseq", "typesmapping"],
    "debugging": ["debugger", "execmodel"],
    "formats": ["formatstrings", "strings"],
    "statements": ["compound"],
    "types": ["types"],
}
"""Task -> topics of Python's reference."""
CODE = ["argparse", "doctest", "inspect", "mailbox", "tarfile", "typing"]
AREAS = [*PROSE, *CODE]
CHECKPOINTS = 40
STEPS = 4000
LETTERS = 60_000  # of each area, half of them for training
QUESTIONS = 150
WINDOW = 64
BATCH = 8
FADES = 0.25, 0.75  # of the training: where the share of prose leaves a half, where it is nothing

COMMAND = """# scrimp select run select.toml
name = "language-model"
checkpoints = "step-*"
tasks = {tasks}
metric = "acc"
storage = "sqlite:///commands.db"
load_cost = 20
seed = 0

[lm_eval]
model_args = "pretrained={{checkpoint}}"
include_path = "tasks"
include_defaults = false
device = "cpu"
batch_size = 32

[run]
answers = 0.03
"""


def sources(area: str) -> tuple[str, str]:
    """The half of an area for training, and the half that questions are made of."""
    if area in PROSE:
        from pydoc_data.topics import topics

        text = "\n".join(topics[topic] for topic in PROSE[area])
    else:
        text = (Path(sysconfig.get_path("stdlib")) / f"{area}.py").read_text(encoding="utf-8")
    text = text[:LETTERS]
    middle = text.index("\n", len(text) // 2)
    return text[:middle], text[middle:]


def share_of_prose(progress: float) -> float:
    """How much of a batch is prose: a half at first, nothing at last."""
    begin, end = FADES
    return 0.5 * min(1.0, max(0.0, (end - progress) / (end - begin)))


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
                answer = rng.randrange(4)
                choices = alike(lines[at], rng)
                choices.insert(answer, choices.pop(0))
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


def alike(line: str, rng: random.Random) -> list[str]:
    """A line, and three more with two neighbouring words of it exchanged."""
    words = line.split()
    places = [at for at, pair in enumerate(pairwise(words)) if pair[0] != pair[1]]
    orders = [words]
    for at in rng.sample(places, 3):
        orders.append([*words[:at], words[at + 1], words[at], *words[at + 2 :]])
    blank = line[: len(line) - len(line.lstrip())]
    return [blank + " ".join(order) for order in orders]


def train(folder: Path, steps: int) -> None:
    """A small transformer on bytes in pairs and more; a checkpoint after every fortieth."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    texts = ["\n".join(sources(area)[0] for area in areas) for areas in (PROSE, CODE)]
    pairs = ByteLevelBPETokenizer()
    pairs.train_from_iterator(texts, vocab_size=1024, special_tokens=["<end>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pairs._tokenizer, eos_token="<end>", bos_token="<end>", pad_token="<end>"
    )
    prose, code = (torch.tensor(pairs.encode(text).ids) for text in texts)
    print(f"{len(prose)} tokens of prose, {len(code)} of code", flush=True)
    torch.manual_seed(0)
    size = {"n_positions": 2 * WINDOW, "n_embd": 64, "n_layer": 2, "n_head": 4}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=1024, bos_token_id=0, eos_token_id=0, **size))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    rng = random.Random(0)
    began = time.process_time()
    for step in range(1, steps + 1):
        share = share_of_prose(step / steps)
        batch = torch.stack(
            [window(prose if rng.random() < share else code, rng) for _ in range(BATCH)]
        )
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


def window(tokens, rng: random.Random):
    """Tokens in a row from a place drawn at random."""
    start = rng.randrange(len(tokens) - WINDOW)
    return tokens[start : start + WINDOW]


def harness(folder: Path):
    """lm-eval with the local tasks; the last checkpoint asked for stays in memory."""
    from scrimp.integrations.lm_eval import LmEval

    return LmEval(
        metric="acc",
        batch_size=32,
        device="cpu",
        include_path=str(folder / "tasks"),
        include_defaults=False,
        folder=str(folder),
    )


def scores(folder: Path, checkpoint: str, tasks: list[str]) -> dict[str, tuple[float, float]]:
    """Accuracy and standard error by task, over all questions."""
    asked, found = harness(folder), {}
    for task, size in asked.questions(tasks).items():
        mean = sum(asked(checkpoint, task, range(size))) / size
        found[task] = mean, (mean * (1 - mean) / (size - 1)) ** 0.5
    return found


def select(folder: Path, names: list[str]) -> scrimp.Selection:
    """Pick a checkpoint from 3 % of the answers."""
    asked = harness(folder)
    selection = scrimp.create_selection(
        "language-model",
        checkpoints=names,
        tasks=asked.questions(AREAS),
        load_cost=20.0,  # a load takes as long as 20 answers, so there are fewer, larger rounds
        storage=f"sqlite:///{folder}/scrimp.db",
        load_if_exists=True,
        seed=0,
    )
    print(selection.run(asked, answers=0.03))
    return selection


def select_benchmarks(folder: Path, names: list[str]) -> scrimp.Selection:
    """Pick a checkpoint with a tenth of the whole tasks."""
    selection = scrimp.create_selection(
        "whole-tasks",
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
    """Evaluate everything into ``scores.csv``, and say what the choice has lost."""
    path = folder / "scores.csv"
    table: dict[str, dict[str, float]] = {}
    if path.exists():
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                table.setdefault(row["checkpoint"], {})[row["task"]] = float(row["score"])
    else:
        path.write_text("checkpoint,task,score,stderr\n", encoding="utf-8")
    for name in names:
        if len(table.get(name, {})) == len(AREAS):
            continue
        found = scores(folder, name, AREAS)
        table[name] = {task: score for task, (score, _) in found.items()}
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{name},{task},{one[0]},{one[1]}\n" for task, one in found.items()))
        print(f"{name} on all tasks: {sum(table[name].values()) / len(AREAS):.4f}", flush=True)
    means = {name: sum(row.values()) / len(row) for name, row in table.items()}
    best = max(means, key=lambda name: means[name])
    rank = sorted(means.values(), reverse=True).index(means[chosen]) + 1
    print(f"evaluating everything: {best} is best with {means[best]:.4f}")
    print(f"the choice, {chosen}, has {means[chosen]:.4f}: rank {rank} of {len(names)}")
    print(f"lost {means[best] - means[chosen]:.4f}; the last one loses", end=" ")
    print(f"{means[best] - means[names[-1]]:.4f}")


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
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
    whole = "--benchmarks" in sys.argv
    selection = (select_benchmarks if whole else select)(folder, names)
    ended = time.perf_counter(), time.process_time()
    for what, start, end in (("training", began, trained), ("selection", trained, ended)):
        print(f"{what}: {end[0] - start[0]:.0f} s, {end[1] - start[1]:.0f} s of processor time")
    for name in ("grid", "curve", "confidence") if whole else ("race", "scores", "tasks", "saved"):
        picture = getattr(scrimp.plots, f"selection_{name}")(selection)
        picture.write_html(folder / f"{name}.html", include_plotlyjs="directory")
    if "--full" in sys.argv:
        compare(folder, names, selection.recommend().checkpoint)
        spent = time.process_time() - ended[1]
        print(f"evaluating everything: {spent:.0f} s of processor time")


if __name__ == "__main__":
    main()
