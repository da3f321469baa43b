"""A scheduler and a suggester as one policy."""

from dataclasses import dataclass

from scrimp.methods.policy import Decision, Scheduled, Start
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.scheduler import Finish, Resume, Verdict
from scrimp.study_log.decision_record import DecisionRecord, InBracket
from scrimp.study_log.events import StudyCreated
from scrimp.study_log.history import History
from scrimp.suggesters.suggester import Suggester, Suggestion
from scrimp.suggesters.untried_configs import RandomSuggester
from scrimp.testing.policies import PolicyBattery, World, play


@dataclass(frozen=True)
class Scripted(Suggester):
    """Gives these configurations one after the other, and says which request it saw."""

    configs: tuple

    def suggest(self, history, request, count, rng):
        rest = self.configs[len(history.trials) :][:count]
        return Suggestion(
            rest, DecisionRecord(own={"seen": (request.budget, request.bracket, dict(request.tag))})
        )


class TestScheduled(PolicyBattery):
    def policy(self):
        return Scheduled(AsynchronousHalving(brackets=2), RandomSuggester())

    def test_its_chooser_is_the_suggester(self):
        policy = self.policy()
        assert policy.chooser is policy.suggester


def empty():
    return History.of([StudyCreated(name="s", problem=World().problem.to_json(), method={})])


def test_a_sample_becomes_a_start_with_the_suggested_configuration():
    policy = Scheduled(AsynchronousHalving(), Scripted(({"x": 0.25},)))
    decision = policy.decide(empty(), empty().rng("decide"))
    assert decision == Decision(
        Start({"x": 0.25}, 1.0, {}, None, InBracket(0)), DecisionRecord(own={"seen": (1.0, 0, {})})
    )


def test_an_exhausted_space_still_promotes_and_then_finishes():
    configs = tuple({"x": x} for x in (0.1, 0.2, 0.3, 0.4))
    policy = Scheduled(AsynchronousHalving(), Scripted(configs))
    history = play(policy, World(workers=2))
    assert len(history.trials) == 4
    assert history.with_status("running") == []
    assert max(trial.budget for trial in history.trials) >= 3
    assert policy.decide(history, history.rng("decide")).action == Finish(
        "every configuration of the space was tried"
    )


def test_reviews_are_the_schedulers():
    policy = Scheduled(AsynchronousHalving("stopping"), Scripted(({"x": 0.5},) * 40))
    history = play(policy, World(workers=1, events=150))
    stopped = history.with_status("stopped")
    assert stopped and all(policy.review(history, trial.id) is Verdict.STOP for trial in stopped)


def test_the_outline_is_the_decision_without_the_suggester():
    @dataclass(frozen=True)
    class Costly(Suggester):
        def suggest(self, history, request, count, rng):
            raise AssertionError("a model was fitted")

    history = play(
        Scheduled(AsynchronousHalving(brackets=2), Scripted(({"x": 0.5},) * 40)),
        World(workers=2, events=60),
    )
    kinds = set()
    for length in range(1, history.length):
        part = History.of(history.events[:length])
        decided = Scheduled(AsynchronousHalving(brackets=2), Scripted(({"x": 0.5},) * 40)).decide(
            part, part.rng("decide")
        )
        outlined = Scheduled(AsynchronousHalving(brackets=2), Costly()).outline(
            part, part.rng("decide")
        )
        kinds.add(type(outlined.action))
        if isinstance(decided.action, Start):
            expected = Start(
                {}, decided.action.budget, decided.action.tag, None, decided.action.reason
            )
            assert outlined.action == expected
        else:
            assert outlined == decided
    assert Start in kinds and Resume in kinds
