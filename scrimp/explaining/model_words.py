"""What a model saw in the values so far, in words: the parameters along which they change."""

from scrimp.freeze_thaw.curve_gp import SHARED
from scrimp.history.notes import Fit, Notes
from scrimp.history.problem import Problem

__all__ = ["depends_words", "model_lines"]


def model_lines(notes: Notes, problem: Problem) -> list[str]:
    """What the model was fitted to, and along which parameters it sees the value change fastest."""
    fit = next(iter((notes.fit or {}).values()), None)
    if fit is None:
        return []
    lines = [f"The model was fitted anew for this decision, to {fit.n} observations."]
    order = [name for _, name in sorted(_scales_by_name(fit, problem), key=lambda pair: pair[0])]
    if len(order) > 1:
        lines.append(
            f"It saw {problem.metric} change fastest along {order[0]}, slowest along {order[-1]}."
        )
    return lines


def depends_words(notes: Notes, problem: Problem) -> str:
    """Along which two parameters the model saw the metric change fastest; empty where it does not
    say."""
    fit = next(iter((notes.fit or {}).values()), None)
    pairs = [] if fit is None else _scales_by_name(fit, problem)
    names = problem.space.searched
    if notes.curves is not None and len(notes.curves.theta) == len(names) + SHARED:
        pairs = list(zip(notes.curves.theta, names, strict=False))  # their logarithms come first
    order = [name for _, name in sorted(pairs, key=lambda pair: pair[0])]
    if len(order) < 2:
        return ""
    return f", which saw {problem.metric} change fastest along {order[0]}, then {order[1]},"


def _scales_by_name(fit: Fit, problem: Problem) -> list[tuple[float, str]]:
    """The noted length-scale of each parameter that has one."""
    scales, names = fit.length_scales, problem.space.searched
    if len(scales) != len(names):
        return []
    return [(scale, name) for scale, name in zip(scales, names, strict=True) if scale is not None]
