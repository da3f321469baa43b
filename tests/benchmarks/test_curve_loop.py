"""The workers that peers are put through: a clock, several runs at once, slices that go on where
they were."""

import sys

import benchmarks.peers.curve_loop as module


class Halving:
    """Every run pauses after its first level; the third slice goes on with the first run."""

    def __init__(self):
        self.seen, self.started = [], 0

    def start(self):
        self.started += 1
        if self.started > 3:
            return None
        return (
            self.started,
            {"x": 1 if self.started == 3 else self.started},
            1 if self.started == 3 else 0,
        )

    def report(self, handle, level, value):
        self.seen.append((handle, level, value))
        return handle == 3


def test_runs_share_a_clock_and_go_on_where_they_were(monkeypatch):
    asked = []

    def answer(message):
        asked.append(message["config"]["x"])
        return {"values": [10.0 - k - message["config"]["x"] for k in range(4)]}

    monkeypatch.setattr(module, "answer_to", answer)
    workers = module.Workers(Halving, levels=4)
    trace = workers.run(limit=100.0, workers=2)
    assert asked == [1, 2]  # the run of a configuration is asked for once
    assert workers.peer.seen == [(1, 1, 9.0), (2, 1, 8.0), (3, 2, 8.0), (3, 3, 7.0), (3, 4, 6.0)]
    assert trace == [(1.0, 9.0), (1.0, 8.0), (3.0, 7.0), (4.0, 6.0)]
    assert workers.decisions == 3 and workers.seconds >= 0.0


def test_the_clock_ends_the_comparison(monkeypatch):
    monkeypatch.setattr(module, "answer_to", lambda message: {"values": [1.0, 2.0, 3.0, 4.0]})
    workers = module.Workers(Halving, levels=4)
    workers.run(limit=2.0, workers=1)
    assert workers.peer.seen == [(1, 1, 1.0), (2, 1, 1.0)]


def test_a_live_peer_answers_line_by_line(monkeypatch, capsys):
    import io
    import json

    lines = [
        {"start": True},
        {"report": [0, 1, 0.5]},
        {"start": True},
        {"start": True},
        {"report": [2, 2, 0.4]},
        {"start": True},
    ]
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("".join(json.dumps(line) + "\n" for line in lines))
    )
    module.serve(Halving())
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert answers == [
        {"ready": True},
        {"handle": 0, "config": {"x": 1}, "done": 0},
        {"goes_on": False},
        {"handle": 1, "config": {"x": 2}, "done": 0},
        {"handle": 2, "config": {"x": 1}, "done": 1},
        {"goes_on": True},
        {"handle": None},
    ]
