"""The loop that peers run in: no scrimp needed, the same results as ours in shape, resumable."""

import json
import subprocess
import sys
from pathlib import Path

from scrimp.bench.regret_suite import run_function
from scrimp.bench.results import read_runs, result_cell

ROOT = Path(__file__).resolve().parents[2]


def run_random(*options: str) -> None:
    """Run random search as a peer, in a process that cannot import scrimp."""
    code = (
        "import sys; sys.modules['scrimp'] = None; import benchmarks.peers.random_functions as peer;"
        " peer.main(peer.RandomSearch, ['random'])"
    )
    subprocess.run([sys.executable, "-c", code, *options], check=True, cwd=ROOT)


def test_quality_has_the_shape_of_our_own_results(tmp_path: Path) -> None:
    out = tmp_path / "peers.jsonl"
    options = ["quality", "--out", str(out), "--functions", "mixed,failing,noisy", "--trials", "6"]
    run_random(*options, "--seeds", "1")
    first = out.read_text()
    run_random(*options, "--seeds", "2")
    assert out.read_text().startswith(first)  # what stands there is not run again
    records = read_runs(out)
    assert [(record["task"], record["seed"]) for record in records] == [
        (task, seed) for seed in (0, 1) for task in ("mixed", "failing", "noisy")
    ]
    for record in records:
        own = run_function(result_cell(record))
        assert set(own) - {"workers"} == set(record) and own["at"] == record["at"]


def test_speed_keeps_its_proposals(tmp_path: Path) -> None:
    out = tmp_path / "peers.jsonl"
    run_random("speed", "--out", str(out), "--sizes", "5", "--repeats", "3")
    (record,) = (json.loads(line) for line in out.read_text().splitlines())
    assert record["n"] == 5 and len(record["proposals"]) == 4
    assert 0 <= record["ask_seconds"] <= record["ask_seconds_median"]
