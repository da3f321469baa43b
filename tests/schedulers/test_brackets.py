"""Brackets as a fold: slots, results, and fresh rungs."""

from scrimp.schedulers.brackets import BracketTable, Job, report_at

SHAPES = (((4, 1.0), (2, 3.0)), ((2, 3.0),))


def test_jobs_fill_slots_in_order(log):
    table = BracketTable(SHAPES)
    assert log.history.derive(table).job() == Job(0, 0, 0, 1.0)
    log.start(1.0, bracket=0)
    assert log.history.derive(table).job() == Job(0, 0, 1, 1.0)


def test_fresh_brackets_fill_every_rung_with_new_trials(log):
    table = BracketTable(SHAPES, promoting=0)
    for loss in (0.4, 0.1, 0.3, 0.2):
        log.report(log.start(1.0, bracket=0), 1.0, loss)
    state = log.history.derive(table)
    assert state.job() == Job(0, 1, 0, 3.0)
    assert state.running[0].leaders == [1, 3]  # the parents of the next rung
    for _ in range(2):
        log.report(log.start(3.0, bracket=0), 3.0, 0.5)
    state = log.history.derive(table)
    assert state.running == {}
    assert state.job() == Job(1, 0, 0, 3.0)


def test_a_trial_of_a_rung_that_is_over_changes_nothing(log):
    table = BracketTable(SHAPES)
    for loss in (0.4, 0.1, 0.3, 0.2):
        log.report(log.start(1.0, bracket=0), 1.0, loss)
    log.end(0, "failed")
    state = log.history.derive(table)
    assert list(state.running[0].members) == [1, 3]
    assert state.job() == Job(0, 1, 0, 3.0, 1)


def test_trials_without_a_bracket_are_left_alone(log):
    log.start(1.0)
    assert log.history.derive(BracketTable(SHAPES)).job() == Job(0, 0, 0, 1.0)


def test_report_at_a_level(log):
    trial = log.start(9.0)
    assert report_at(log.history.trials[trial], 1.0) is None
    for step, loss in ((2, 0.5), (4, 0.4), (6, None)):
        log.report(trial, step, loss)
    view = log.history.trials[trial]
    found = [report_at(view, level) for level in (1, 2, 3, 4, 5, 9)]
    assert [point.loss for point in found] == [0.5, 0.5, 0.4, 0.4, None, None]
