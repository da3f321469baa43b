"""Spaces read off configurations."""

from scrimp.bench.tables import space_of_table
from scrimp.space.parameter import Categorical, Float, Int, Ordinal


def test_every_kind():
    configs = [
        {
            "lr": 10.0**-k,
            "act": ["relu", "tanh"][k % 2],
            "units": [16, 32][k % 2],
            "n": 3 + 7 * k,
            "fixed": 1,
            "mom": 0.1 * k,
        }
        for k in range(30)
    ]
    found = space_of_table(configs)
    assert list(found) == ["lr", "act", "units", "n", "mom"]
    assert isinstance(found["lr"], Float) and (found["lr"].log, found["lr"].high) == (True, 1.0)
    assert found["act"] == Categorical(["relu", "tanh"])
    assert found["units"] == Ordinal([16, 32])
    assert isinstance(found["n"], Int) and (found["n"].low, found["n"].log) == (3, False)
    assert found["mom"].log is False  # reaches 0
