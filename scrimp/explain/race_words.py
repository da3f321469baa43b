"""A race over questions in words: why these questions, why a checkpoint left, who led then.

    for line in checkpoint_lines(selection.history, 3000): print(line)

Every number is computed again from the answers in the log at that time, by the race that decided.
"""

import numpy as np

from scrimp.checkpoint_selection.question_policy import RaceFold, race_of
from scrimp.checkpoint_selection.question_race import QuestionRace
from scrimp.checkpoint_selection.score_table import Checkpoint
from scrimp.errors import StudyError
from scrimp.explain.reason_words import counted
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

MAX_TASKS_LISTED = 4


def part_lines(history: History, trial: Trial) -> list[str]:
    """Explain the questions that a trial was granted, from the log before the decision."""
    fold, race = race_of(history)
    if race.round is None:
        return []
    task = fold.tasks.index(str(trial.config["task"]))
    row = fold.checkpoints.index(trial.config["checkpoint"])
    return [*_round_lines(fold, race, task), *_leader_lines(fold, race, row)]


def _round_lines(fold: RaceFold, race: QuestionRace, task: int) -> list[str]:
    """Say how many questions the round has of each task, and why."""
    assert race.round is not None
    before = np.zeros(len(race.sizes), np.intp)
    if len(race.past_rounds) > 1:
        before = np.minimum(race.past_rounds[-2].upto, race.round.upto)
    more = race.round.upto - before
    order = [int(place) for place in np.argsort(-more, kind="stable") if more[place] > 0]
    listed = ", ".join(
        f"{more[place]} of {fold.tasks[place]}" for place in order[:MAX_TASKS_LISTED]
    )
    others = sum(int(more[place]) for place in order[MAX_TASKS_LISTED:])
    listed += f" and {others} of {len(order) - MAX_TASKS_LISTED} more tasks" if others else ""
    if not before[task] and race.sizes[task] > 1:
        why = f"every task is asked once first, and {fold.tasks[task]} had no answer yet"
    else:
        noise = float(np.sqrt(race.noise[task]))
        why = (
            "questions go to the task where they reduce the variance of the mean score most for"
            " their cost:"
            f" one answer of {fold.tasks[task]} has a noise of {noise:.2g}, its weight is"
            f" {race.shares[task]:.2g}, and {counted(int(before[task]), 'answer')} came before"
        )
    return [f"The round has {listed} in random order, the same for every checkpoint; {why}."]


def _leader_lines(fold: RaceFold, race: QuestionRace, row: int) -> list[str]:
    """Say who led, and where the row stood."""
    rows = race.contenders
    upto = race.counts[rows].min(0)
    if not upto.any():
        return []
    scores, leader = race.book.scores(rows, upto), fold.checkpoints[race.leader]
    common = counted(int(upto.sum()), "common question")
    words = f"On {common} checkpoint {leader} led with {scores.max():.4g}"
    if race.tied:
        words += f", tied with {race.tied} other{'s' if race.tied > 1 else ''}"
    for own in scores[rows == row]:
        place = 1 + int((scores > own).sum())
        words += f"; this one was number {place} of {len(scores)} with {own:.4g}"
    return [f"{words}."]


def checkpoint_lines(history: History, checkpoint: Checkpoint) -> list[str]:
    """Explain where a checkpoint stands in the race, or why it was eliminated."""
    fold, race = race_of(history)
    if checkpoint not in fold.checkpoints:
        raise StudyError(
            f"there is no checkpoint {checkpoint!r}; known:"
            f" {', '.join(map(str, fold.checkpoints[:12]))}"
        )
    row = fold.checkpoints.index(checkpoint)
    asked = int(race.counts[row].sum())
    first = (
        f"Checkpoint {checkpoint} has answered {asked:,} of {int(race.sizes.sum()):,} questions."
    )
    if row in race.failed:
        return [first, "It left the race because an evaluation failed."]
    rounds = [number for number, each in enumerate(race.past_rounds) if row in each.rows]
    if not rounds:
        words = (
            f"The budget is enough for {race.starters} checkpoints, drawn at random; it is not one."
        )
        return [first, words]
    if rounds[-1] == len(race.past_rounds) - 1:
        return [first, "It is in the race.", *_leader_lines(fold, race, row)]
    return [first, _elimination(fold, race, row, rounds[-1])]


def _elimination(fold: RaceFold, race: QuestionRace, row: int, number: int) -> str:
    """Say by which scores a row was eliminated after a round."""
    left, stayed = race.past_rounds[number], race.past_rounds[number + 1].rows
    scores = race.book.scores(left.rows, left.upto)
    own, kept = float(scores[left.rows == row][0]), scores[np.isin(left.rows, stayed)]
    place = 1 + int((scores > own).sum())
    tied = " (a tie, broken at random)" if own >= kept.min() else ""
    return (
        f"It was eliminated after round {number + 1} of {len(race.past_rounds)}: on the"
        f" {counted(int(left.upto.sum()), 'question')} that all {len(left.rows)} had answered its score was"
        f" {own:.4g}, number {place}; {len(kept)} stayed, the last of them with"
        f" {kept.min():.4g}{tied}."
    )
