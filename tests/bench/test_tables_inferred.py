"""Spaces read off configurations."""

from scrimp.bench.tables import space_of_table


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
    found = {item["name"]: item for item in space_of_table(configs)}
    assert list(found) == ["lr", "act", "units", "n", "mom"]
    assert (found["lr"]["type"], found["lr"]["log"], found["lr"]["high"]) == ("float", True, 1.0)
    assert found["act"] == {"name": "act", "type": "choice", "choices": ["relu", "tanh"]}
    assert found["units"] == {"name": "units", "type": "ordinal", "choices": [16, 32]}
    assert (found["n"]["type"], found["n"]["low"], found["n"]["log"]) == ("int", 3, False)
    assert found["mom"]["log"] is False  # reaches 0
