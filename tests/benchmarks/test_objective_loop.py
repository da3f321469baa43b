"""The loop that peers with several objectives are put through, with a peer that draws at random."""

import io
import json

import numpy as np
import pytest

import benchmarks.peers.objective_loop as loop

SPACE = [
    {"name": "rate", "type": "float", "low": 1e-4, "high": 1.0, "log": True},
    {"name": "depth", "type": "int", "low": 1, "high": 5, "log": False},
    {"name": "kind", "type": "choice", "choices": ["a", "b", "c"]},
    {"name": "width", "type": "ordinal", "choices": [8, 16, 64]},
]


class Draws:
    def __init__(self, method, space, objectives, seed):
        self.cube, self.rng, self.told = loop.UnitCube(space), np.random.default_rng(seed), []

    def ask(self):
        return self.cube.decode(self.rng.random(sum(self.cube.widths)).tolist())

    def tell(self, losses, violations):
        self.told.append((losses, violations))

    def add(self, config, losses):
        self.told.append((losses, []))


def test_speed_says_what_an_ask_took(tmp_path):
    speed = loop.run_speed(Draws, "draws", 10, 2)
    assert 0 <= speed["ask_seconds"] <= speed["ask_seconds_median"]
    out = tmp_path / "out.jsonl"
    loop.append(out, speed)
    assert loop.finished(out) == {("objective-speed", "zdt1", "draws", 0, 10)}


def test_the_cube_and_back():
    cube = loop.UnitCube(SPACE)
    config = {"rate": 0.01, "depth": 5, "kind": "b", "width": 64}
    row = cube.encode(config)
    assert row == pytest.approx([0.5, 1.0, 0, 1, 0, 1.0])
    assert cube.decode(row) == {**config, "rate": pytest.approx(0.01)}
    assert not cube.discrete and loop.UnitCube(SPACE[2:]).discrete


def test_a_peer_asks_and_is_told_until_the_input_ends(monkeypatch, capsys):
    task = {"space": SPACE, "objectives": 2, "trials": 2, "seed": 0}
    answers = [{"losses": None}, {"losses": [1.0, 2.0], "violations": []}]
    lines = [json.dumps(message) for message in (task, *answers, task, *answers)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    loop.serve(Draws, "draws")
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(each) for each in said] == [["config"], ["config"], ["seconds"]] * 2
    assert said[0] == said[3]  # the same seed
