"""Live studies: the loop around a peer, resumable results, and the figures of the report."""

import json
import math
import time
from argparse import Namespace
from concurrent.futures import Future

import benchmarks.training.real_training as module
import benchmarks.training.training_report as reporting


class Halving:
    """Pauses every run after its first unit; the third slice goes on with the first run to its
    end."""

    def __init__(self):
        self.seen, self.started = [], 0

    def start(self):
        self.started += 1
        return (
            ("a", {"x": 1}, 1)
            if self.started == 3
            else ("ab"[self.started - 1], {"x": self.started}, 0)
        )

    def report(self, handle, level, value):
        self.seen.append((handle, level, value))
        return level > 1


def test_the_loop_hands_out_units_until_the_total():
    optimizer = Halving()

    def job(part):
        _, config, done = part
        future = Future()
        future.set_result(10.0 * config["x"] - done)
        return future

    trace = module.live(optimizer, job, (5, math.inf), workers=1, began=time.monotonic())
    assert optimizer.seen == [
        ("a", 1, 10.0),
        ("b", 1, 20.0),
        ("a", 2, 9.0),
        ("a", 3, 8.0),
        ("a", 4, 7.0),
    ]
    assert [(units, loss) for units, _, loss in trace] == [(1, 10.0), (3, 9.0), (4, 8.0), (5, 7.0)]
    late = time.monotonic() - 60.0
    assert module.live(Halving(), job, (math.inf, 50.0), workers=1, began=late) == []


def record(method, seed, trace, seconds=100.0):
    return {
        "problem": "mlp", "method": method, "seed": seed, "fulls": 1, "workers": 2, "units": 27, "seconds": seconds,
        "best": trace[-1][2], "trace": trace,
    }  # fmt: skip


def test_the_report_ranks_and_says_how_soon(tmp_path, capsys):
    path = tmp_path / "real.jsonl"
    runs = [
        record("auto", 0, [[1, 5.0, 3.0], [10, 40.0, 1.0]]),
        record("asha", 0, [[1, 5.0, 3.0], [20, 80.0, 2.0]]),
        record("random", 0, [[1, 5.0, 0.5]]),
    ]
    path.write_text("\n".join(map(json.dumps, runs)) + '\n{"half')
    reporting.report(Namespace(file=path))
    lines = capsys.readouterr().out.splitlines()
    (asha,) = [line for line in lines if line.startswith("  asha") and "median" in line]
    assert (
        "median 2.0000" in asha
        and "rank 2.50 2.50 2.50 3.00 3.00" in asha
        and "auto needs 40% of its time" in asha
    )
    (missed,) = [line for line in lines if line.startswith("  random") and "median" in line]
    assert missed.endswith("auto reaches its end in 0 of 1")
    (together,) = [line for line in lines if line.startswith("  asha") and "(1 runs)" in line]
    assert together.endswith("auto needs 40% of its time")
    assert reporting.reached(runs[0], 2.0) == 40.0 and reporting.reached(runs[0], 0.5) == float(
        "inf"
    )
    assert reporting.best_at(runs[1], 0.5) == 3.0
    assert reporting.best_at(runs[1] | {"limit": 100.0}, 0.8) == 2.0  # by seconds
    assert reporting.ranks({"a": 1.0, "b": 2.0, "c": 1.0}) == {"a": 1.5, "b": 3.0, "c": 1.5}


def test_runs_that_are_held_are_not_run_again(tmp_path, monkeypatch, capsys):
    path = tmp_path / "real.jsonl"
    done = []

    def once(name, method, seed, given):
        done.append((name, method, seed))
        return record(method, seed, [[1, 1.0, 1.0]])

    monkeypatch.setattr(module, "run_one", once)
    given = Namespace(
        out=path,
        first_seed=0,
        seeds=2,
        problems="mlp",
        methods="auto,asha",
        fulls=1,
        seconds=None,
        workers=2,
    )
    module.run(given)
    assert len(done) == 4
    module.run(given)
    assert len(done) == 4 and len(module.read(path)) == 4
    given.seconds = 9.0  # another comparison
    module.run(given)
    assert len(done) == 8


def test_two_problems_train_and_resume():
    """A pickled state goes on as the state itself does."""
    import pickle

    import numpy as np

    for name in ("mlp", "boosting"):
        problem = module.ALL_PROBLEMS[name]
        space = module.described_space(problem.space)
        config = space.sample(1, np.random.default_rng(1))[0]
        state, first = problem.train(problem.start(config, 0))
        copy = pickle.loads(pickle.dumps(state))
        assert problem.train(copy)[1] == problem.train(state)[1] and first > 0
