"""The loop that peers with several objectives are put through, with a peer that draws at random."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
loop = pytest.importorskip("objective_loop")


class Draws:
    def __init__(self, method, space, objectives, seed):
        self.space, self.rng, self.told = space, np.random.default_rng(seed), []

    def ask(self):
        return {p["name"]: float(self.rng.uniform(p["low"], p["high"])) for p in self.space}

    def tell(self, losses, violations):
        self.told.append((losses, violations))

    def add(self, config, losses):
        self.told.append((losses, []))


def test_quality_keeps_what_was_tried_and_speed_what_it_took(tmp_path):
    record = loop.run_quality(Draws, "draws", "bnh", 0, 4)
    assert len(record["tried"]) == 4 and len(record["tried"][0][1]) == 2
    speed = loop.run_speed(Draws, "draws", 10, 2)
    assert 0 <= speed["ask_seconds"] <= speed["ask_seconds_median"]
    out = tmp_path / "out.jsonl"
    loop.append(out, record)
    assert loop.finished(out) == {("objectives", "bnh", "draws", 0, 4)}
