"""The description of a search space, read off the configurations that were tried.

    # lr and act
    inferred_space([{"lr": 0.1, "act": "relu", "k": 3}, {"lr": 1e-4, "act": "tanh", "k": 3}])

Texts and truth values are choices. Numbers of at most a dozen values, each tried twice or more on
average, are ordinal; others reach from the lowest to the highest, logarithmic where that is a
hundredfold. What never varies is left out.
"""

from collections.abc import Mapping, Sequence

from scrimp.checks import is_number
from scrimp.json_values import Json, Scalar

__all__ = ["space_of_table"]

FEW = 12
WIDE = 100.0


def space_of_table(configs: Sequence[Mapping[str, Scalar]]) -> list[dict[str, Json]]:
    """One entry for every parameter that varies, in the order of the first configuration."""
    described = []
    for name in configs[0]:
        values = [config[name] for config in configs]
        distinct = list(dict.fromkeys(values))
        if len(distinct) > 1:
            described.append({"name": str(name), **_kind(distinct, len(values))})
    return described


def _kind(distinct: list[Scalar], count: int) -> dict[str, Json]:
    numbers = [value for value in distinct if is_number(value)]
    if len(numbers) < len(distinct):
        return {"type": "choice", "choices": distinct}
    if len(distinct) <= FEW and 2 * len(distinct) <= count:
        return {"type": "ordinal", "choices": sorted(numbers)}
    low, high = min(numbers), max(numbers)
    kind = "int" if all(isinstance(value, int) for value in numbers) else "float"
    return {"type": kind, "low": low, "high": high, "log": bool(low > 0 and high / low >= WIDE)}
