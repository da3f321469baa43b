"""Checkpoint selection by question: the race as a policy over a selection's log.

A cell, ``{"checkpoint": 2000, "task": "arc"}``, is a trial whose budget is counted in questions: a
grant of 40 means that the checkpoint answers the first 40 questions of the task, in the random order
that the seed fixes. A cell pauses after its round and resumes with a larger grant in the next one.
So leases, lost workers, numbered decisions and replay are those of any study, and no question is
asked twice. The answers of a report stand in its event, packed (`pack_answers`).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Concatenate,
    Literal,
    NamedTuple,
    NotRequired,
    ParamSpec,
    TypedDict,
    TypeVar,
    cast,
)

import numpy as np

from scrimp.checkpoint_selection.answer_book import (
    AnswerBook,
    Array,
    Questions,
    Values,
    packed,
    unpacked,
)
from scrimp.checkpoint_selection.question_race import NUMBERS, QuestionRace
from scrimp.checkpoint_selection.score_table import Checkpoint
from scrimp.errors import ReportError, ScrimpError, StudyError
from scrimp.executors.live_trial import LiveTrial
from scrimp.json_values import JsonObject
from scrimp.methods.policy import Decision, Start
from scrimp.schedulers.scheduler import Finish, Resume, Wait
from scrimp.space.parameter import Categorical
from scrimp.space.space import Space
from scrimp.study_log.decision_record import AskedInRound, DecisionRecord
from scrimp.study_log.events import Ended, Event, Reported, Retried
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.limits import StopSettings
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial
from scrimp.threads import one_thread

if TYPE_CHECKING:  # these load SciPy
    from scrimp.checkpoint_selection.race_posterior import RacePosterior
    from scrimp.checkpoint_selection.recommendation import Recommendation

P = ParamSpec("P")
R = TypeVar("R")

RACE = "race"
"""The name of the method, in the record of a selection."""

ANSWERS_PER_CHECKPOINT = 8
"""Budget of the first race of a selection without a budget, in questions for each checkpoint; the
next races have twice the budget of the one before."""

MIN_ROUNDS = 4
"""Rounds of a race in which loading a checkpoint is expensive, at least."""


class Answers(NamedTuple):
    """Answers to some questions, and their margins if they have any (count,)."""

    values: Array
    margins: Array | None = None


def pack_answers(values: Values, margins: Values | None = None) -> str:
    """Return answers as text: one bit each if all are 0 or 1, else 32-bit floats, in base64; margins
    follow after a comma, as 16-bit floats.

    >>> pack_answers([1, 0, 1]), unpack_answers(pack_answers([1, 0, 1]), 3).values.tolist()
    ('boA==', [1.0, 0.0, 1.0])
    """
    numbers = np.asarray(values, float)
    binary = np.isin(numbers, (0.0, 1.0)).all()
    bits = np.packbits(numbers.astype(bool))
    text = f"b{packed(bits, 'u1')}" if binary else f"f{packed(numbers, '<f4')}"
    if margins is None:
        return text
    return f"{text},{packed(np.clip(np.asarray(margins, float), -6e4, 6e4), '<f2')}"


def unpack_answers(text: str, count: int) -> Answers | None:
    """Return the ``count`` answers of a text; None if it does not hold as many numbers."""
    first, comma, second = text.partition(",")
    try:
        margins = unpacked(second, "<f2", count) if comma else None
        if first[:1] == "f":
            return Answers(unpacked(first[1:], "<f4", count), margins)
        if first[:1] == "b":
            bits = unpacked(first[1:], "u1", math.ceil(count / 8)).astype(np.uint8)
            return Answers(np.unpackbits(bits, count=count).astype(float), margins)
    except ValueError:
        pass
    return None


def checked_answers(
    result: object, questions: Sequence[int], checkpoint: object, task: str
) -> Answers:
    """Return answers as arrays; `ReportError` unless there is one number, or one pair of a number and
    a margin, for each question."""
    try:
        answers = np.asarray(result, float)
    except (TypeError, ValueError):
        answers = np.empty((0, 0, 0))
    if answers.shape not in ((len(questions),), (len(questions), 2)):
        raise ReportError(
            f"answers of checkpoint {checkpoint!r} to {task!r} are {str(result)[:80]!r}; return one"
            f" number, or one pair (number, margin), for each of the {len(questions)} questions, in"
            " their order"
        )
    if not np.isfinite(answers).all():
        place = int(np.argwhere(~np.isfinite(answers))[0][0])
        raise ReportError(
            f"the answer of checkpoint {checkpoint!r} to question {questions[place]} of {task!r} is"
            f" {answers[place]}; score a missing answer as 0"
        )
    values = answers if answers.ndim == 1 else answers[:, 0]
    wrong = np.flatnonzero((values < 0.0) | (values > 1.0))
    if len(wrong):
        raise ReportError(
            f"the answer of checkpoint {checkpoint!r} to question {questions[wrong[0]]} of {task!r} is"
            f" {values[wrong[0]]:g}; it must be between 0 and 1: 1 for right, 0 for wrong, percentages"
            " divided by 100"
        )
    return Answers(answers) if answers.ndim == 1 else Answers(answers[:, 0], answers[:, 1])


@dataclass(frozen=True)
class QuestionEvaluation:
    """A function of checkpoint, task and questions as the objective of a trial."""

    function: Callable[[Checkpoint, str, list[int]], object]
    settings: "RaceFold"

    def __call__(self, trial: LiveTrial) -> None:
        checkpoint, task = trial.params["checkpoint"], str(trial.params["task"])
        asked = self.settings.asked(task, trial.begin, trial.budget)
        result = self.function(checkpoint, task, asked)
        answers = checked_answers(result, asked, checkpoint, task)
        trial.report_answers(float(answers.values.mean()), pack_answers(*answers))


@dataclass
class RaceState:
    """A race, and the trial of every cell that was asked, by row and task."""

    race: QuestionRace
    trials: dict[tuple[int, int], int]


@dataclass(frozen=True)
class RaceFold(Fold[RaceState]):
    """The race of a selection: a function of its settings and of the answers in the log."""

    checkpoints: tuple[Checkpoint, ...]
    tasks: tuple[str, ...]
    questions: Questions
    signs: tuple[float, ...]
    seed: int
    budget: float = math.inf
    rounds: int | None = None
    load: float = 0.0

    def begin(self, problem: Problem) -> RaceState:
        """Return the race before any answer."""
        book = AnswerBook(self.questions, len(self.checkpoints), self.seed)
        return RaceState(QuestionRace(book, self.budget, self.seed, self.rounds, self.load), {})

    def step(
        self, state: RaceState, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        """Take in the answers of a report; a cell that failed takes its checkpoint out of the race."""
        if trial is None or trial.config["checkpoint"] not in self.checkpoints:
            return
        race = state.race
        row = self.checkpoints.index(trial.config["checkpoint"])
        task = self.tasks.index(str(trial.config["task"]))
        state.trials[row, task] = trial.id
        asked = int(race.counts[row, task])
        if isinstance(event, Reported) and int(trial.budget) > asked:
            answers = unpack_answers(event.answers, int(trial.budget) - asked)
            if answers is not None:
                race.record(row, task, self.signs[task] * answers.values, answers.margins)
        elif isinstance(event, Ended) and trial.status == "failed":
            race.failed.add(row)
        elif isinstance(event, Retried):
            race.failed.discard(row)
        race.advance()

    def asked(self, task: str, begin: float, end: float) -> list[int]:
        """Return the questions of a task from one place of its order to another."""
        order = self.questions.orders(self.seed)[self.tasks.index(task)]
        asked: list[int] = order[int(begin) : int(end)].tolist()
        return asked

    @property
    def total(self) -> float:
        """The cost of all answers."""
        return float(self.questions.totals @ self.questions.prices) * len(self.checkpoints)


def is_race(history: History) -> bool:
    """True if a selection asks by question."""
    return history.method.get("name") == RACE


def race_of(history: History) -> tuple[RaceFold, QuestionRace]:
    """Return the race and its settings. Without a budget there are races of doubling budgets on the
    same answers; this is the first that has not ended. A share limits the answers, a budget also the
    loads."""
    stop = history.limits.stop or StopSettings()
    settings, load = race_settings(history), recorded_settings(history)["load_cost"]
    answers = math.inf if stop.share is None else stop.share * settings.total
    if stop.budget is not None and stop.budget < answers:
        return _at_budget(history, replace(settings, load=load), stop.budget, load)
    if stop.share is not None:
        return _at_budget(history, settings, answers, load)
    rows, price = len(settings.checkpoints), float(settings.questions.prices.mean())
    budget = ANSWERS_PER_CHECKPOINT * rows * price
    while True:
        fold, race = _at_budget(history, settings, min(budget, settings.total), load)
        if race.round is not None or budget >= settings.total:
            return fold, race
        budget *= 2.0


def _at_budget(
    history: History, settings: RaceFold, budget: float, load: float
) -> tuple[RaceFold, QuestionRace]:
    """Return the race with this budget, in so few rounds that loads take at most a fifth of it: a
    race of R rounds loads about R (N - 1) / ln N checkpoints."""
    rows, rounds = len(settings.checkpoints), None
    if load > 0.0 and rows > 1:
        loads = (rows - 1) / math.log(rows)
        rounds = max(min(NUMBERS.rounds, int(0.2 * budget / (load * loads))), MIN_ROUNDS)
    fold = replace(settings, budget=budget, rounds=rounds)
    return fold, history.derive(fold).race


class SelectionSettings(TypedDict):
    """The settings of a selection, in the record of its method; those by name are by task."""

    ordered: bool
    weights: Mapping[str, float]
    costs: Mapping[str, float]
    scales: Mapping[str, float]
    stderr: bool
    tolerance: float
    directions: NotRequired[Mapping[str, str]]
    options: NotRequired[JsonObject]
    groups: NotRequired[Mapping[str, Sequence[str]]]
    answer: NotRequired[Literal["measured", "smooth"]]
    questions: NotRequired[Mapping[str, int]]
    load_cost: NotRequired[float]
    repeats: NotRequired[int]
    difficulty: NotRequired[Mapping[str, str]]


DAMAGED = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""Errors of a log with content that no selection writes."""


def read_in_words(
    function: Callable[Concatenate[History, P], R],
) -> Callable[Concatenate[History, P], R]:
    """Return a function of a selection's log that raises `StudyError` where the log has content that
    no selection writes."""

    @wraps(function)
    def read(history: History, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(history, *args, **kwargs)
        except ScrimpError:
            raise
        except DAMAGED as error:
            raise StudyError(
                f"selection {history.created.name!r} cannot be read ({error!r}): its log has content"
                " that scrimp does not write; restore a backup, or delete it"
            ) from None

    return read


def recorded_settings(history: History) -> SelectionSettings:
    """Return the settings that a selection was created with."""
    return cast("SelectionSettings", history.method["settings"])


def cells_of_space(space: Space) -> tuple[tuple[Checkpoint, ...], tuple[str, ...]]:
    """Return the checkpoints and the tasks, whose combinations are the configurations of a space."""
    rows, columns = space["checkpoint"], space["task"]
    assert isinstance(rows, Categorical) and isinstance(columns, Categorical)
    checkpoints = tuple(choice for choice in rows.choices if choice is not None)
    return checkpoints, tuple(map(str, columns.choices))


def race_settings(history: History) -> RaceFold:
    """Return the settings of a race as they are recorded, without its budget."""
    settings = recorded_settings(history)
    checkpoints, tasks = cells_of_space(history.problem.space)
    levels = settings.get("difficulty") or {}
    directions = settings.get("directions", {})
    return RaceFold(
        checkpoints=checkpoints,
        tasks=tasks,
        questions=Questions(
            sizes=tuple(int(settings["questions"][name]) for name in tasks),
            weights=tuple(float(settings["weights"].get(name, 1.0)) for name in tasks),
            costs=tuple(float(settings["costs"].get(name, 1.0)) for name in tasks),
            repeats=settings.get("repeats", 1),
            difficulty=tuple(levels.get(name, "") for name in tasks) if levels else (),
        ),
        signs=tuple(-1.0 if directions.get(name) == "minimize" else 1.0 for name in tasks),
        seed=history.problem.seed,
    )


def questions_asked(history: History, trial: Trial) -> list[int]:
    """Return the questions that a trial was granted and has not answered, as places in the task."""
    return race_settings(history).asked(trial.config["task"], trial.budget, trial.granted)


def question_scores(history: History) -> Iterator[tuple[Checkpoint, str, float, float]]:
    """Yield checkpoint, task, mean and standard error of every cell with an answer."""
    fold, race = race_of(history)
    for row, task in np.argwhere(race.counts > 0):
        count = int(race.counts[row, task])
        own = fold.signs[task] * race.book.answers(np.array([row]), task, count)[0]
        left = 1.0 - count / race.sizes[task]
        spread = float(np.sqrt((own.var() * count + 0.25) / (count + 1.0) / count * left))
        yield fold.checkpoints[row], fold.tasks[task], float(own.mean()), spread


def race_words(history: History) -> str:
    """Describe the state of a race: 12 of 60 checkpoints, round 7."""
    fold, race = race_of(history)
    return (
        f"{len(race.alive)} of {len(fold.checkpoints)} checkpoints, round {len(race.past_rounds)},"
        f" {int(race.counts.sum()):,} answers"
    )


@read_in_words
def decide_questions(history: History) -> Decision:
    """Return the next part of the round that no one is answering."""
    fold, race = race_of(history)
    ending, trials = _ending(history, fold, race), history.derive(fold).trials
    running = {trial.id for trial in history.with_status("running", "stale")}
    if ending is not None:
        return Decision(Wait(ending) if running else Finish(ending))
    busy = {place for place, trial in trials.items() if trial in running}
    loaded = {row for row, _ in busy}
    free = [part for part in race.open_parts() if (part.row, part.task) not in busy]
    # If possible of a checkpoint that no one has loaded.
    part = min(free, key=lambda part: part.row in loaded, default=None)
    if part is None:
        return Decision(Wait("the questions of this round are being answered"))
    reason = AskedInRound(
        round=len(race.past_rounds),
        alive=len(race.alive),
        checkpoints=len(fold.checkpoints),
        leader=fold.checkpoints[race.leader] if race.counts.any() else None,
        answers=int(race.sizes.sum()) * len(fold.checkpoints),
    )
    record = DecisionRecord(reason=reason)
    trial = trials.get((part.row, part.task))
    cell = {"checkpoint": fold.checkpoints[part.row], "task": fold.tasks[part.task]}
    asked = float(part.end)
    return Decision(Start(cell, asked) if trial is None else Resume(trial, asked), record)


def _ending(history: History, fold: RaceFold, race: QuestionRace) -> str | None:
    """Return why no further question is asked, or None."""
    if len(fold.checkpoints) == 1:
        return "there is one checkpoint only"
    if not len(race.alive):
        return "every checkpoint has failed"
    if race.round is None:
        if (race.counts[race.alive] >= race.sizes).all():
            return "the remaining checkpoints have answered every question"
        return f"{race.spent:,.6g} of the budget of {fold.budget:,.6g} have been spent"
    limit = None if history.limits.stop is None else history.limits.stop.loss
    if limit is None or not race.counts.any():
        return None
    # Only between rounds: all rows in the race have answered the same questions.
    if (race.counts[race.alive] > race.counts[race.alive].min(0)).any():
        return None
    loss = stated(history, race).expected_loss
    return f"the expected loss {loss:.2g} is below {limit:.2g}" if loss <= limit else None


def stated(history: History, race: QuestionRace) -> "RacePosterior":
    """Return the statement about the leader of a race."""
    from scrimp.checkpoint_selection.race_posterior import race_posterior

    with one_thread():
        return race_posterior(race, recorded_settings(history)["ordered"])


def interval_of(
    fold: RaceFold, race: QuestionRace, statement: "RacePosterior"
) -> tuple[float, float]:
    """Return the 90 % interval of the stated score, cut to the scores that are possible."""
    signs = np.array(fold.signs)
    lowest, highest = (float(race.shares @ end) for end in (signs.clip(max=0), signs.clip(min=0)))
    low, high = statement.interval
    return max(low, lowest), min(high, highest)


def recommend_race(history: History) -> "Recommendation":
    """Return the leader of the race as a recommendation."""
    from scrimp.checkpoint_selection.recommendation import Recommendation

    fold, race = race_of(history)
    if not race.counts.any():
        raise StudyError("no question has been answered yet; ask and tell some first")
    statement = stated(history, race)
    others = race.best(race.contenders, 2)
    sign = fold.signs[0] if len(set(fold.signs)) == 1 else 1.0
    low, high = sorted(sign * end for end in interval_of(fold, race, statement))
    return Recommendation(
        checkpoint=fold.checkpoints[statement.row],
        underlying=fold.checkpoints[int(np.argmax(statement.mean))],
        expected_score=sign * statement.score,
        standard_error=statement.standard_error,
        expected_loss=statement.expected_loss,
        probability_best=statement.probability_best,
        runner_up=fold.checkpoints[int(others[1])] if len(others) > 1 else None,
        spent=race.spent,
        tolerance=0.0,
        interval=(low, high),
        asked=int(race.counts.sum()),
        answers=int(race.sizes.sum()) * len(fold.checkpoints),
        tied=race.tied,
    )
