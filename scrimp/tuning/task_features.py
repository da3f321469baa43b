"""Methods that compare tasks by their features need some: refused where a study is made, not
discovered when it decides.

TST-M and TAF-M weigh past studies by the distance between meta-features. Without a feature that all
of them share every past study would count alike, which is another method, and one that nobody
chose.

    check_features("tst-m", {"rows": 1797}, {"old": {"rows": 150}})
"""

from collections.abc import Mapping

from scrimp.errors import MethodError

__all__ = ["check_features"]


def check_features(
    method: str, own: Mapping[str, float], past: Mapping[str, Mapping[str, float]]
) -> None:
    """Refuse a method that weighs past studies by features where this task, or a past one, has none
    in common with the others.

    ``past``: the features of past studies by their names.
    """
    remedy = "or use 'tst-r' and 'taf-r', which compare how tasks rank configurations"
    if not own:
        raise MethodError(
            f"method {method!r} weighs past studies by features of their tasks, and this study has"
            " none; give features={'rows': 1797, 'classes': 10} here and for the past studies,"
            f" {remedy}"
        )
    shared = set(own).intersection(*past.values()) if past else set(own)
    if shared:
        return
    lacking = [name for name, features in past.items() if not set(own) & set(features)] or list(
        past
    )
    listed = ", ".join(map(repr, lacking[:3])) + (
        f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
    )
    raise MethodError(
        f"method {method!r} compares tasks by features, and no feature of this study"
        f" ({', '.join(sorted(own))}) is known of all past ones; {listed} have none of them. Leave"
        f" those out of learn_from, {remedy}"
    )
