"""Ranks, and the colours that say so."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.plots.style import ACCENT, chosen_trials, line_colours, shade, trial_ranks


def test_ranks_follow_the_best_feasible_values(whole: scrimp.Study) -> None:
    place = trial_ranks(whole.history)
    assert place[whole.best_trial.id] == 0.0 and max(place.values()) == 1.0 and len(place) == 48
    order = sorted(place, key=lambda number: place[number])
    known = [whole.trials[number].best for number in order]
    feasible = [value for value in known if value is not None]
    assert feasible == sorted(feasible, reverse=True) and None not in known[: len(feasible)]


def test_the_better_the_stronger() -> None:
    assert shade(0.0) == ACCENT
    strength = [float(shade(rank).rpartition(",")[2].rstrip(")")) for rank in (0.1, 0.5, 1.0)]
    assert strength == sorted(strength, reverse=True) and strength[-1] > 0.2
    assert shade(None).startswith("rgba")


def test_the_best_and_the_newest_are_chosen_the_best_last(staged: scrimp.Study) -> None:
    chosen = chosen_trials(staged.history, None, 8)
    assert chosen[-1].id == staged.best_trial.id and len(chosen) <= 8
    newest = [trial.id for trial in staged.trials if trial.curve][-4:]
    assert set(newest) <= {trial.id for trial in chosen}
    assert {trial.id for trial in chosen_trials(staged.history, [2, 4], 8)} == {2, 4}
    with pytest.raises(StudyError, match="no trial 99"):
        chosen_trials(staged.history, [99], 8)


def test_a_few_lines_are_told_apart(staged: scrimp.Study) -> None:
    few = chosen_trials(staged.history, [staged.best_trial.id, 2, 4], 8)
    colours = line_colours(staged.history, few)
    assert len(set(colours.values())) == 3 and colours[staged.best_trial.id] == ACCENT
    many = line_colours(staged.history, chosen_trials(staged.history, None, 20))
    place = trial_ranks(staged.history)
    assert many == {number: shade(place[number]) for number in many} and len(many) > 7


def test_a_trial_alone_is_no_faint_line(staged: scrimp.Study) -> None:
    place = trial_ranks(staged.history)
    worst = max(place, key=lambda number: place[number])
    (colour,) = line_colours(staged.history, [staged.trials[worst]]).values()
    assert colour.startswith("#") and colour != shade(1.0)
