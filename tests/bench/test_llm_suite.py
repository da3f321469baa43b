"""A day of tuning a language model, replayed: failures cost time, and wrong files are refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.llm_suite import (
    DEFAULTS,
    SHARES_OF_TIME,
    SPACE,
    llm_cells,
    llm_summary,
    read_trials,
    recorded_trainings,
    run_llm,
)
from scrimp.errors import TableError

pytest.importorskip("sklearn", reason="the forests are those of scikit-learn")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 made trainings: deep models run out of memory after 20 s, others take 300 s."""
    target = tmp_path_factory.mktemp("llm") / "trials.csv"
    rng = np.random.default_rng(0)
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["method", "run", "val_bpb", "ok", "seconds", *SPACE])
        writer.writeheader()
        for config in [DEFAULTS, *SPACE.sample(299, rng)]:
            ok = config["depth"] <= 14
            loss = 1 + 0.1 * abs(np.log10(config["matrix_lr"] / 0.03))
            told = {"val_bpb": loss if ok else "", "ok": int(ok), "seconds": 300 if ok else 20}
            writer.writerow({"method": "made", "run": 0, **told, **config})
    return target


def test_trainings_answer_for_any_configuration(path: Path) -> None:
    trainings = recorded_trainings(str(path))
    loss, seconds = trainings.train({**DEFAULTS, "matrix_lr": 0.03})
    assert loss == pytest.approx(1.0, abs=0.03) and seconds == 300
    loss, seconds = trainings.train({**DEFAULTS, "depth": 23})
    assert loss is None and seconds == pytest.approx(20)


def test_failures_cost_their_time_and_report_nothing(path: Path) -> None:
    runs = [run_llm(cell) for cell in llm_cells(path, ["gp", "random"], 1, 2.0)]
    for run in runs:
        assert run["hours"] == [2 * share for share in SHARES_OF_TIME]
        best = [loss for loss in run["best"] if loss is not None]
        assert best == sorted(best, reverse=True)
        failed = round(run["out_of_memory"] * run["trials"])
        # Every training that ended in time: 300 s, or 20 s if it failed.
        used = 300 * (run["trials"] - failed) + 20 * failed
        assert 7200 - 300 <= used <= 7200
    model, chance = runs
    assert model["out_of_memory"] < chance["out_of_memory"]
    header, rows = llm_summary(runs)
    assert header == ["val_bpb", "gp", "random"]
    assert [row[0] for row in rows][:2] == ["best after 5%", "best after 10%"]
    assert rows[-2][2] == f"{chance['out_of_memory']:.0%}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column 'val_bpb'"),
        ("", "no column 'val_bpb'"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(text)
    with pytest.raises(TableError, match=message):
        read_trials(wrong)


def test_a_broken_line_is_named(path: Path, tmp_path: Path) -> None:
    lines = path.read_text().split("\n")
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join([lines[0], lines[1].replace("made,0,", "made,0,x"), *lines[2:]]))
    with pytest.raises(TableError, match="line 2 of"):
        read_trials(broken)
    with pytest.raises(TableError, match="cannot read"):
        read_trials(tmp_path / "none.csv")
    with pytest.raises(TableError, match="needs trainings with a loss"):
        only = tmp_path / "only.csv"
        only.write_text("\n".join(lines[:2]))
        read_trials(only)
    with pytest.raises(TableError, match="hours is 0"):
        llm_cells(path, ["gp"], 1, 0.0)
