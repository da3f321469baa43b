"""The place of a trial on the front, and the part of the front that a decision aimed at.

front_headline(history, trial)               # "on the front", "dominated by trial 7"
aim_lines(reason, front, problem)            # "between trial 3 and trial 9: ..."
"""

from collections.abc import Mapping

from scrimp.explain.reason_words import ROUNDING_TOLERANCE, counted
from scrimp.study_log.compromise import knee_of
from scrimp.study_log.decision_record import Expected, Modelled
from scrimp.study_log.history import History
from scrimp.study_log.problem import Losses, Problem, dominates
from scrimp.study_log.standings import Front
from scrimp.study_log.trial import Trial


def metric_words(metrics: Mapping[str, float | None], problem: Problem) -> str:
    """List the study's metrics in a report."""
    said = ((name, metrics.get(name)) for name in problem.names)
    return ", ".join(f"{name} {'-' if value is None else f'{value:.6g}'}" for name, value in said)


def front_headline(history: History, trial: Trial) -> str:
    """Say that a trial is on the front, or name a trial that dominates its last report."""
    own = [point.step for other, point in history.front if other.id == trial.id]
    if own:
        knee = knee_of(history)
        place = ", at its knee" * (knee is not None and knee[0].id == trial.id)
        behind = _listed(dominated_trials(history, trial))
        return f"on the front{place}, with {counted(len(history.front), 'report')} in all{behind}"
    last = trial.last
    if last is None or last.counted is None or not last.feasible:
        return "not on the front"
    better = (
        other.id
        for other, point in history.front
        if point.counted is not None and dominates(point.counted, last.counted)
    )
    ahead = list(dict.fromkeys(better))
    if not ahead:
        return "not on the front: another trial has the same values"
    more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    return f"dominated by trial {ahead[0]}{more}"


def dominated_trials(history: History, trial: Trial) -> list[int]:
    """Return the other trials whose reports are all dominated by one report of this trial."""
    own = [point.counted for point in trial.curve if point.counted is not None and point.feasible]
    found = []
    for other in history.trials:
        theirs = [point.counted for point in other.curve if point.counted is not None]
        beaten = any(all(dominates(losses, known) for known in theirs) for losses in own)
        if beaten and theirs and other.id != trial.id:
            found.append(other.id)
    return found


def _listed(trials: list[int]) -> str:
    """List the dominated trials.

    >>> _listed([3, 5, 8, 9]), _listed([4]), _listed([])
    ('; it dominates trials 3, 5, 8 and 1 more', '; it dominates trial 4', '')
    """
    if not trials:
        return ""
    more = f" and {len(trials) - 3} more" if len(trials) > 3 else ""
    shown = ", ".join(map(str, trials[:3]))
    return f"; it dominates trial{'s' * (len(trials) > 1)} {shown}{more}"


def aim_lines(reason: Modelled, front: Front, problem: Problem) -> list[str]:
    """Return the prediction of a decision for every metric, and the part of the front it aimed at;
    nothing if it is not recorded.

    Models of curves predict no loss below the lowest one they have seen: a prediction or the end of a
    band at the best value of the front means that value or better.
    """
    each = reason.each
    if not each or not each.keys() >= set(problem.names):
        return []
    best: list[float | None] = [None] * len(problem.names)
    if front and reason.question is not None:
        best = [min(known[place] for known, _, _ in front) for place in range(len(best))]
    parts = zip(problem.names, problem.signs, best, strict=True)
    said = [f"{name} {_band(each[name], sign, floor)}" for name, sign, floor in parts]
    losses = problem.counted(problem.losses({name: each[name].loss for name in problem.names}))
    where = "" if losses is None else _place(losses, sorted(front), problem)
    if " or better (" in "".join(said) and (same := _level_with(losses, front)) is not None:
        where = f": level with trial {same} on the front, or ahead of it"
    return [f"The models predicted {', '.join(said)}{where}."]


def _band(expected: Expected, sign: float, floor: float | None) -> str:
    """Format a prediction; ``floor``: the lowest loss that its model knows."""
    if expected.low is None or expected.high is None:
        return f"{expected.loss:.4g}"
    low, high = sorted((expected.low, expected.high))
    good, bad = (low, high) if sign > 0 else (high, low)
    if floor is None or good == bad or not _nearly(sign * good, floor):
        return f"{expected.loss:.4g} ({low:.4g} to {high:.4g})"
    if _nearly(sign * expected.loss, floor):
        return f"{expected.loss:.4g} or better ({'up' if bad == high else 'down'} to {bad:.4g})"
    return f"{expected.loss:.4g} ({good:.4g} or better to {bad:.4g})"


def _nearly(first: float, second: float) -> bool:
    """Return True for equal numbers, one of which was rounded to six digits in a record."""
    return abs(first - second) <= ROUNDING_TOLERANCE * abs(second)


def _level_with(losses: Losses | None, front: Front) -> int | None:
    """Return the trial of the front whose values these are; None without one."""
    for known, trial, _ in front:
        if losses is not None and all(map(_nearly, losses, known)):
            return trial
    return None


def _place(losses: Losses, front: Front, problem: Problem) -> str:
    """Describe a place on the front by the trials around it."""
    beaten = [trial for known, trial, _ in front if dominates(losses, known)]
    if beaten:
        listed = ", ".join(map(str, list(dict.fromkeys(beaten))[:3]))
        return f": ahead of the front, in place of trial {listed}"
    if any(known == losses or dominates(known, losses) for known, _, _ in front):
        near = min(front, key=lambda member: _apart(member[0], losses, front))
        return f": behind the front near trial {near[1]}, which it beats only if it exceeds its prediction"
    before = [trial for known, trial, _ in front if known[0] <= losses[0]]
    after = [trial for known, trial, _ in front if known[0] > losses[0]]
    if before and after:
        return f": between trial {before[-1]} and trial {after[0]} on the front"
    if not front:
        return ": the first of the front"
    end = "beyond its best" if after else "beyond its worst"
    return f": {end} {problem.names[0]}, past trial {(after or before[-1:])[0]} on the front"


def _apart(known: Losses, losses: Losses, front: Front) -> float:
    """Return the squared distance of two reports, in units of the extent of the front."""
    total = 0.0
    for place, (first, second) in enumerate(zip(known, losses, strict=True)):
        column = [member[0][place] for member in front]
        total += ((first - second) / ((max(column) - min(column)) or 1.0)) ** 2
    return total
