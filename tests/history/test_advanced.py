from scrimp.history.advanced import ended, given_up, granted, observation, with_point
from scrimp.history.events import BudgetGranted, Ended, Reported
from scrimp.history.problem import AtMost, Problem
from scrimp.history.trial import Observation, Trial
from scrimp.space.parameter import Float
from scrimp.space.space import Space


def test_a_report_is_measured_by_the_question():
    problem = Problem(Space(x=Float(0, 1)), direction="maximize", constraints={"m": AtMost(1.0)})
    point = observation(Reported(trial=0, step=2.0, metrics={"value": 3.0, "m": 4.0}), problem)
    assert (point.loss, point.violation, point.losses) == (-3.0, 3.0, None)


def test_points_stand_in_order_and_the_first_of_a_step_counts():
    curve = ()
    for step, loss in ((3.0, 0.3), (1.0, 0.1), (2.0, 0.2), (2.0, 9.0)):
        curve = with_point(curve, Observation(step, {}, loss))
    assert [(point.step, point.loss) for point in curve] == [(1.0, 0.1), (2.0, 0.2), (3.0, 0.3)]


def test_a_grant_and_an_end():
    trial = granted(BudgetGranted(trial=0, budget=3.0, attempt=2, time=5.0), Trial(id=0, config={}))
    assert (trial.granted, trial.attempt, trial.status, trial.started) == (3.0, 2, "running", 5.0)
    assert given_up(Reported(trial=0, step=1.0, metrics={}, attempt=1), trial)
    assert not given_up(Reported(trial=0, step=1.0, metrics={}, attempt=2), trial)
    over = ended(Ended(trial=0, status="stopped", message="enough"), trial)
    assert (over.status, over.message) == ("stopped", "enough")
