"""The examples run as they stand; the demo resumes, and states savings as an outcome."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

from scrimp.formats.selection_file import read_selection_file
from scrimp.formats.study_file import read_study_file

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=True
    ).stdout


def test_the_demo_compares_outcomes_and_resumes_when_it_is_run_again(tmp_path: Path) -> None:
    text = run(tmp_path, str(EXAMPLES / "demo.py"), "0", "6")
    table = text.partition("reached random search's best after\n")[2].splitlines()[:3]
    rows = {words[0]: words[1:] for words in map(str.split, table)}
    assert list(rows) == ["auto", "asha", "random"]
    assert int(rows["random"][1]) == 6 * 27 and 97 <= int(rows["auto"][1]) < 97 + 27
    for method in ("auto", "asha"):
        reached = rows[method][2]
        assert (reached == "never") == (float(rows[method][0]) > float(rows["random"][0]))
    if rows["auto"][2] != "never":
        said = f"auto reached random search's best after {rows['auto'][2]} of 162 epochs"
        assert said in text
    assert "checkpoint: " in text and "explain demo-auto" in text
    again = run(tmp_path, str(EXAMPLES / "demo.py"), "0", "6")
    assert again.partition("method ")[2] == text.partition("method ")[2]


def test_examples_import_public_names_only() -> None:
    """Newcomers copy them: scrimp itself and what the documentation names."""
    allowed = {"scrimp", "scrimp.script", "scrimp.extend", "scrimp.testing", "scrimp.errors"}
    private = [
        f"{path.name}: {name}"
        for path in EXAMPLES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if name.split(".")[0] == "scrimp"
        and name not in allowed
        and not name.startswith(("scrimp.testing.", "scrimp.integrations."))
    ]
    assert private == []


def test_the_study_file_is_right_and_its_script_trains_by_hand(tmp_path: Path) -> None:
    plan = read_study_file(EXAMPLES / "study.toml")
    assert plan.name == "digits-script" and plan.run["workers"] == 2
    out = run(
        tmp_path,
        str(EXAMPLES / "train_script.py"),
        "--lr",
        "0.3",
        "--hidden",
        "32",
        "--batch",
        "32",
    )
    lines = [line for line in out.splitlines() if line.startswith("scrimp: ")]
    assert len(lines) == 27 and float(re.search(r'"val_error": ([0-9.]+)', lines[-1])[1]) < 0.1  # type: ignore[index]


def test_the_study_file_of_the_documentation_is_right(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "command.md").read_text(encoding="utf-8")
    text = re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1]  # type: ignore[index]
    (tmp_path / "study.toml").write_text(text.replace('"python ', '"{python} '))
    (tmp_path / "train.py").touch()
    assert read_study_file(tmp_path / "study.toml").run == {"n_trials": 50, "workers": 2}


def test_the_learning_rate_of_the_textbook(tmp_path: Path) -> None:
    text = run(tmp_path, str(EXAMPLES / "learning_rate.py"), "out", "2")
    assert text.count("balanced accuracy") == 4 and "pictures are in out/" in text
    assert float(re.search(r"with ([0-9.]+);", text)[1]) > 0.8  # type: ignore[index]
    pictures = sorted(path.name for path in (tmp_path / "out").glob("learning-rate-*.html"))
    assert pictures == [f"learning-rate-{number:02d}.html" for number in (1, 2)]


def test_the_checkpoint_example_finds_a_good_one_with_a_tenth_of_the_cells(tmp_path: Path) -> None:
    script = EXAMPLES / "checkpoints" / "select_checkpoint.py"
    text = run(tmp_path, str(script), "out")
    assert "48 of 480 cells evaluated" in text
    lost, last = map(
        float, re.search(r"lost: ([0-9.]+)   by taking the last: ([0-9.]+)", text).groups()
    )  # type: ignore[union-attr]
    assert lost < last / 4 and last > 0.05
    assert sorted(path.name for path in (tmp_path / "out").glob("*.html")) == [
        "confidence.html",
        "curve.html",
        "grid.html",
    ]


def test_the_multi_task_example_finds_the_peak(tmp_path: Path) -> None:
    text = run(tmp_path, str(EXAMPLES / "best_checkpoint.py"), "0.15")
    assert (
        "Posterior(30 checkpoints x 12 tasks" in text
        and "take checkpoint" in text
        and "second opinion" in text
    )
    assert float(re.search(r"lost: ([0-9.]+)", text)[1]) < 0.01  # type: ignore[index]


def test_methods_of_learning_curves_are_compared_on_a_virtual_clock(tmp_path: Path) -> None:
    text = run(tmp_path, str(EXAMPLES / "curve_methods.py"), "2")
    names = ["asha", "bohb", "mobster-joint", "mobster-indep", "hypertune4-indep", "dyhpo"]
    assert [line.split()[0] for line in text.splitlines()] == names
    errors = [float(found) for found in re.findall(r"error (\d\.\d+) after", text)]
    assert len(errors) == len(names) and max(errors) < 0.5  # an untrained network has 0.9
    pictures = {path.stem for path in tmp_path.glob("*.html")}
    assert pictures == {"curves", "rungs", "timeline", "importance"}


def test_transfer_methods_are_compared_with_a_plain_process(tmp_path: Path) -> None:
    text = run(tmp_path, str(EXAMPLES / "transfer_methods.py"), "3")
    distance = {
        method: float(value)
        for method, value in re.findall(r"^(\S+) +ADTM (\d\.\d+)", text, re.MULTILINE)
    }
    assert list(distance) == ["gp:initial=3", "TST-R", "TAF", "RGPE", "RMoGP", "POGPE", "auto"]
    assert all(
        value < distance["gp:initial=3"]
        for name, value in distance.items()
        if name != "gp:initial=3"
    )
    assert (tmp_path / "weights.html").exists()


def test_the_selection_files_are_right(tmp_path: Path) -> None:
    plan = read_selection_file(EXAMPLES / "checkpoints" / "select.toml")
    assert plan.name == "digits-command" and plan.run["share"] == 0.2
    page = (EXAMPLES.parent / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    text = re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1]  # type: ignore[index]
    (tmp_path / "select.toml").write_text(text.replace('"lm_eval ', '"{python} -m lm_eval '))
    assert read_selection_file(tmp_path / "select.toml").question["tasks"]


def test_components_of_ones_own_decide_in_every_kind_of_study(tmp_path: Path) -> None:
    lines = run(tmp_path, str(EXAMPLES / "own_components.py"), "9").splitlines()
    assert [line.split(":")[0] for line in lines] == ["gp", "gp", "gp", "mobster-joint"]
    constrained = re.search(r"'x': ([-0-9.e]+), 'y': ([-0-9.e]+)", lines[2])
    assert constrained is not None and sum(map(float, constrained.groups())) <= 9.0


def test_benchmarks_import_names_that_exist() -> None:
    """They need environments of their own, so nothing else here would notice a name that is
    gone."""
    missing = []
    for path in sorted((EXAMPLES.parent / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("scrimp"):
                continue
            names = dir(importlib.import_module(str(node.module)))
            missing += [f"{path.name}: {a.name}" for a in node.names if a.name not in names]
    assert not missing
