from scrimp.schedulers.bracket_turns import BRACKET_SPENDING, turn_of


def test_what_brackets_spent_follows_grants_and_ends(log):
    """A running trial counts with its grant, a stopped one with what it used."""
    first = log.start(3.0)
    second = log.start(9.0, bracket=1)
    assert log.history.derive(BRACKET_SPENDING) == {0: 3.0, 1: 9.0}
    log.report(second, 4, 0.5)
    log.end(second, "stopped")
    log.report(first, 3, 0.5)
    log.resume(first, 9.0)
    assert log.history.derive(BRACKET_SPENDING) == {0: 9.0, 1: 4.0}


def test_the_bracket_that_is_behind_by_a_share_has_the_turn():
    assert turn_of({0: 5.0}, 3, 10.0) == 0
    assert turn_of({0: 12.0}, 3, 10.0) == 1
    assert turn_of({0: 12.0, 1: 10.0, 2: 31.0}, 3, 10.0) == 0
