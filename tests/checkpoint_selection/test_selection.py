"""Selections by hand and by workers: asking, telling, bad input, growth, resuming, several
processes; nothing is lost.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.checkpoint_selection.selection import Evaluation, plain_checkpoint
from scrimp.display.study_words import summary_line
from scrimp.errors import ObjectiveError, ReportError, StudyError, TableError
from scrimp.explain.replay import replay
from scrimp.study_log.record import StudyRecord

STEPS = list(range(100, 1300, 100))
TASKS = ["a", "b", "c"]


def score(checkpoint: float, task: str) -> float:
    """A peak at 800, and something of each task's own."""
    x = checkpoint / 1200
    return (
        0.5
        + 0.3 * x * (4 / 3 - x)
        + {"a": 0.0, "b": 0.1, "c": -0.1}[task]
        + 0.002 * math.sin(9 * x)
    )


def made(**options: Any) -> scrimp.Selection:
    return scrimp.create_selection(
        "s", **{"checkpoints": STEPS, "tasks": TASKS, "storage": "memory://", "seed": 0, **options}
    )


def played(selection: scrimp.Selection, count: int) -> scrimp.Selection:
    for _ in range(count):
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, score(checkpoint, task), stderr=0.001)
    return selection


def test_ask_tell_recommend() -> None:
    selection = made(cost={"a": 2.0})
    selection.stop_when(share=0.5)
    while not selection.finished:
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, score(checkpoint, task), stderr=0.001)
    answer = selection.recommend()
    assert abs(answer.checkpoint - 800) <= 100 and abs(answer.underlying - 800) <= 100
    assert answer.expected_score == pytest.approx(score(800, "a"), abs=0.01)
    assert 0 <= answer.probability_best <= 1 and answer.expected_loss >= 0
    table = selection.scores
    assert table.seen.sum() == 18 and answer.spent == table.spent
    assert table.scores[table.seen] == pytest.approx(
        [score(*table.label((row, column))) for row, column in np.argwhere(table.seen).tolist()]
    )
    assert (table.errors[table.seen] == 0.001).all()
    assert "18 of 36 cells" in selection.finished and "18 of 36" in repr(selection)
    with pytest.raises(StudyError, match="no further cell: 18 of 36"):
        selection.ask()
    selection.stop_when(share=0.6)
    assert selection.finished is None and selection.ask() not in [("x", "y")]


def test_whether_it_is_finished_needs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    selection = played(made(), 12)

    def refuse(*_: Any) -> None:
        raise AssertionError("a model was made")

    monkeypatch.setattr("scrimp.checkpoint_selection.task_grid_algebra.GridPrior.solve", refuse)
    assert selection.finished is None
    selection.stop_when(share=0.3)
    assert "12 of 36 cells" in selection.finished
    with pytest.raises(AssertionError, match="a model was made"):
        selection.recommend()


def test_the_posterior_and_the_correlations_of_tasks() -> None:
    selection = made()
    for name in ("posterior", "task_correlations"):
        with pytest.raises(StudyError, match="has no score yet"):
            getattr(selection, name)()
    played(selection, 20)
    belief, answer = selection.posterior(refit=True), selection.recommend()
    assert belief.mean.shape == belief.std.shape == (
        12,
        3,
    ) and belief.average_mean.shape == belief.average_std.shape == (12,)
    row = selection.checkpoints.index(answer.checkpoint)
    assert (
        belief.average_mean[row]
        == answer.expected_score
        == max(belief.average_mean[selection.scores.seen.any(axis=1)])
    )
    assert list(belief.dataframe()["task"][:3]) == TASKS
    matrix = selection.task_correlations()
    np.testing.assert_allclose(matrix, matrix.T)
    assert (np.diag(matrix) == 1.0).all() and matrix.min() > 0.5  # all three follow one curve
    assert (
        len(np.unique(selection.task_correlations(kernel=True).round(9))) == 2
    )  # kg knows no pairs beforehand
    with pytest.raises(StudyError, match="'stride', which has no model"):
        played(made(method="stride"), 6).posterior()


def test_the_posterior_is_that_of_the_model_that_decided() -> None:
    selection = played(made(), 20)
    recorded = selection.history.recorded.fit["grid"]
    assert recorded.n < 20
    lengths = [selection.posterior(refit=refit).length_scale for refit in (False, True)]
    assert lengths[0] == pytest.approx(
        math.exp(recorded.state["parameters"]["log_shared_length"][0])
    )
    assert lengths[1] != lengths[0]
    assert "latent" not in repr(selection.posterior()) and "±" in repr(selection.posterior())


def test_uncertain_scores_leave_doubt_about_the_answer() -> None:
    """Every cell measured with a standard error of 0.05: not "± 0" with probability 1."""
    selection = made()
    for step in STEPS:
        for task in TASKS:
            selection.tell(step, task, score(step, task), stderr=0.05)
    answer = selection.recommend()
    assert answer.standard_error > 0.005 and answer.probability_best < 0.9
    assert "sampling error is included, from" in str(answer)
    exact = made(use_stderr=False)
    for step in STEPS:
        for task in TASKS:
            exact.tell(step, task, score(step, task), stderr=0.05)
    text = str(exact.recommend())
    assert "± 0" not in text and "1.00" not in text and "probability >0.99" in text
    assert "sampling error is not included" in text
    assert "&gt;0.99" in exact._repr_html_()


def test_the_smooth_answer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    selection = played(made(storage=url, answer="smooth"), 14)
    belief = selection.posterior(refit=True)
    assert selection.recommend().smooth
    assert selection.recommend().checkpoint == STEPS[int(np.argmax(belief.smooth_average))]
    with pytest.raises(StudyError, match="created with answer 'smooth', not 'measured'"):
        made(storage=url, load_if_exists=True)
    with pytest.raises(StudyError, match="answer is 'best'; it must be 'measured' or 'smooth'"):
        made(answer="best")


def test_tasks_that_move_apart_are_told_from_tasks_that_move_together() -> None:
    def two_ways(checkpoint: float, task: str) -> float:
        x = checkpoint / 1200
        return 0.5 + (0.3 * x if task in "ab" else -0.3 * x) + {"a": 0.0, "b": 0.1, "c": -0.1}[task]

    for method in ("kg", "ei-icm", "ei-icm:rank=full,diagonal=true", "independent:coordinate=step"):
        selection = made(method=method)
        selection.run(two_ways, share=0.7)
        matrix = selection.task_correlations()
        assert matrix[0, 1] > 0.8 and matrix[0, 2] < -0.5, method
    kernel = made(method=scrimp.Method("ei-icm", rank=1))
    kernel.run(two_ways, share=0.7)
    assert kernel.task_correlations(kernel=True)[0, 1:] == pytest.approx(
        [1.0, -1.0]
    )  # one curve: K_t = a a'


def test_lower_is_better_where_the_direction_says_so() -> None:
    selection = made(directions={"c": "minimize"}, tolerance=0.01)
    selection.run(
        lambda step, task: score(step, "a") if task != "c" else 5.0 - score(step, "c"), share=0.8
    )
    assert abs(selection.recommend().checkpoint - 800) <= 100
    belief = selection.posterior()
    assert (
        belief.mean[:, 2].min() > 3.0 and selection.scores.scores[selection.scores.seen].max() > 3.0
    )  # as told
    assert belief.average_mean[7] == pytest.approx(
        (2 * score(800, "a") - 5.0 + score(800, "c")) / 3, abs=0.02
    )
    assert selection.task_correlations()[0, 2] < -0.5
    with pytest.raises(TableError, match="'up' of task 'c' is unknown; write maximize or minimize"):
        made(directions={"c": "up"})
    with pytest.raises(TableError, match="direction of task 'ppl' is given"):
        made(directions={"ppl": "minimize"})


def test_a_batch_has_distinct_cells_and_may_be_told_in_any_order() -> None:
    selection = played(made(), 8)
    cells = selection.ask(count=5)
    assert len(set(cells)) == 5 and selection.pending == cells
    for checkpoint, task in reversed(cells):
        selection.tell(checkpoint, task, score(checkpoint, task))
    assert selection.pending == [] and selection.scores.seen.sum() == 13
    selection.stop_when(share=15 / 36)
    assert len(selection.ask(count=5)) == 2
    with pytest.raises(StudyError, match="until cells under evaluation are told"):
        selection.ask()
    with pytest.raises(StudyError, match="at least one"):
        selection.ask(count=0)


def test_what_a_user_tells_unasked_counts_and_replays() -> None:
    selection = made()
    for step in STEPS[:4]:
        selection.tell(step, "a", score(step, "a"))
    played(selection, 6)
    selection.tell(np.int64(1200), "c", np.float32(0.5))
    selection.tell(1200, "c", 0.5)  # the same again
    selection.tell(1200, "b", state="failed", message="broken file")
    selection.tell(1200, "b", state="failed")
    played(selection, 2)
    assert selection.scores.seen.sum() == 13 and selection.scores.failed.sum() == 1
    assert len(selection.history.trials) == 14
    outcomes = list(replay(selection.history.events))
    assert len(outcomes) == 8 and all(outcome.same for outcome in outcomes)


def test_bad_scores_are_refused_or_recorded_as_failures() -> None:
    selection = played(made(), 6)
    checkpoint, task = selection.ask()
    for value, error, words in (
        (1e12, TableError, "beyond"),
        ("good", ReportError, "must be a number"),
        (None, ReportError, "must be a number"),
    ):
        with pytest.raises(error, match=words):
            selection.tell(checkpoint, task, value)
    with pytest.raises(TableError, match="standard error"):
        selection.tell(checkpoint, task, 0.5, stderr=-1.0)
    with pytest.raises(TableError, match=r"task 'mmlu' is not in the table; known: a, b, c"):
        selection.tell(checkpoint, "mmlu", 0.5)
    with pytest.raises(TableError, match="checkpoint 42 is not in the table"):
        selection.tell(42, task, 0.5)
    with pytest.raises(ReportError, match="state is 'lost'"):
        selection.tell(checkpoint, task, state="lost")
    assert selection.pending == [(checkpoint, task)]  # nothing of it was recorded
    selection.tell(checkpoint, task, math.nan)
    (failed,) = selection.history.with_status("failed")
    assert "not a finite number" in failed.message and selection.scores.failed.sum() == 1
    selection.tell(checkpoint, task, 0.5)  # it could be measured after all
    assert selection.scores.failed.sum() == 0 and selection.scores.seen.sum() == 7


def test_a_cell_has_one_score_unless_replaced() -> None:
    selection = made()
    selection.tell(100, "a", 0.5)
    with pytest.raises(TableError, match=r"has the score 0.5 already and is now given as 0.6"):
        selection.tell(100, "a", 0.6)
    with pytest.raises(ReportError, match="cannot fail"):
        selection.tell(100, "a", state="failed")
    selection.tell(100, "a", 0.6, replacing=True)
    assert selection.scores.scores[0, 0] == 0.6 and selection.scores.seen.sum() == 1
    assert [trial.value for trial in selection.history.trials] == [0.5, 0.6]  # the log keeps both


def test_scores_in_other_units_are_kept_and_pointed_out() -> None:
    selection = made()
    for step in STEPS[:6]:
        selection.tell(step, "a", 0.6 + step / 1e5)
    selection.tell(1000, "a", 61.2)
    (warning,) = selection.recommend().warnings
    assert "61.2" in warning and "1000" in warning and "same units" in warning


def test_a_cell_that_was_given_back_is_handed_out_again() -> None:
    selection = played(made(), 3)
    first = selection.ask()
    selection.give_back(*first)
    assert selection.pending == [first]
    assert selection.ask() == first
    selection.give_back(*first)
    selection.tell(*first, 0.5)  # measured after all, by somebody else
    assert selection.pending == [] and selection.scores.seen.sum() == 4
    with pytest.raises(ReportError, match="nothing to give back"):
        selection.give_back(*first)


def test_checkpoints_arrive_while_selecting() -> None:
    selection = played(made(checkpoints=STEPS[:6]), 8)
    before = selection.ask()
    selection.add_checkpoints([*STEPS[4:], np.int64(1300)])
    selection.add_checkpoints(STEPS)  # known already
    assert selection.checkpoints == (*STEPS, 1300) and selection.scores.seen.sum() == 8
    selection.tell(*before, score(*before))
    played(selection, 20)
    assert abs(selection.recommend().checkpoint - 800) <= 200
    assert selection.scores.seen[6:].any()
    assert all(outcome.same for outcome in replay(selection.history.events))


@pytest.mark.parametrize(
    ("checkpoints", "tasks", "measured"),
    [
        ([7], TASKS, 0),
        (STEPS, ["a"], 12),
        (["base", "chat", "code"], TASKS, 9),
        ([], TASKS, None),
        (STEPS, [], None),
    ],
)
def test_small_tables(checkpoints: list[Any], tasks: list[str], measured: int | None) -> None:
    if measured is None:
        with pytest.raises(TableError, match="give at least one"):
            made(checkpoints=checkpoints, tasks=tasks)
        return
    selection = made(checkpoints=checkpoints, tasks=tasks)
    answer = selection.run(lambda checkpoint, task: len(str(checkpoint)) / 10)
    assert selection.scores.seen.sum() == measured
    assert answer.checkpoint in checkpoints
    assert measured == 0 or math.isfinite(answer.expected_loss)


def test_a_task_that_never_varies_and_one_that_always_fails() -> None:
    def evaluate(checkpoint: int, task: str) -> float:
        if task == "c":
            raise RuntimeError("dataset is gone")
        return 0.25 if task == "b" else score(checkpoint, task)

    selection = made()
    answer = selection.run(evaluate)
    assert abs(answer.checkpoint - 800) <= 100
    table = selection.scores
    assert table.seen.sum() == 24 and table.failed[:, 2].all()
    assert "dataset is gone" in selection.history.with_status("failed")[0].message


@pytest.mark.parametrize("tasks", [["a", "b"], {"a": 500, "b": 500}], ids=["cells", "questions"])
def test_a_broken_evaluation_stops_early(tasks: Any) -> None:
    """Where nothing works on several checkpoints and tasks; one broken checkpoint stops nothing."""
    calls = []

    def broken(checkpoint: int, task: str, *questions: object) -> float:
        calls.append((checkpoint, task))
        raise KeyError("modle")

    selection = scrimp.create_selection(
        "s", checkpoints=range(30), tasks=tasks, storage="memory://", seed=0
    )
    with pytest.raises(StudyError, match=r"cells tried failed; the last one: .*KeyError: 'modle'"):
        selection.run(broken, share=0.5)
    assert len(calls) <= 12

    def one_bad(checkpoint: int, task: str, questions: Any = ()) -> object:
        if checkpoint == calls[0][0]:
            raise OSError("truncated file")
        return [checkpoint / 30] * len(questions) if questions else checkpoint / 30

    again = scrimp.create_selection(
        "t", checkpoints=range(30), tasks=tasks, storage="memory://", seed=0
    )
    assert again.run(one_bad, share=0.5).checkpoint > 20


def test_results_with_errors_and_results_that_are_none() -> None:
    outcomes: dict[str, Any] = {
        "a": (0.5, np.float32(0.01)),
        "b": {"score": 0.6, "stderr": 0.02},
        "c": None,
    }
    selection = made(checkpoints=[1, 2])
    selection.run(lambda checkpoint, task: outcomes[task])
    table = selection.scores
    assert table.scores[0, :2].tolist() == [0.5, 0.6] and table.errors[0, :2] == pytest.approx(
        [0.01, 0.02]
    )
    assert table.failed[:, 2].all()
    with pytest.raises(StudyError, match=r"all 6 cells tried failed.*1e"):
        made(checkpoints=[1, 2]).run(lambda checkpoint, task: 1e20)
    with pytest.raises(ObjectiveError, match="function of a checkpoint and a task"):
        made().run("evaluate")


def test_the_progress_of_a_selection_counts_cells() -> None:
    selection = played(made(), 3)
    selection.ask()
    assert (
        summary_line(StudyRecord.of(selection.history, seconds=2.0))
        == "1 running, 3 completed, of 36 cells  ·  2 s"
    )


def test_a_selection_is_a_card_with_its_answer_in_notebooks() -> None:
    selection = scrimp.create_selection(
        "<b>", checkpoints=[1, 2], tasks=["a"], storage="memory://", seed=0
    )
    card = selection._repr_html_()
    assert "0 of 2 cells" in card and "&lt;b&gt;: select checkpoint with kg</b>" in card
    selection.tell(*selection.ask(), 0.5)
    card = selection._repr_html_()
    assert "1 of 2 cells" in card and "take checkpoint" in card and "costs" not in card
    answer = selection.recommend()
    assert answer.words[0] in answer._repr_html_()


# --- evaluations ----------------------------------------------------------------------------------


class Heard:
    """A trial that remembers what it is told."""

    def __init__(self) -> None:
        self.params = {"checkpoint": 3, "task": "a"}

    def report(self, score: float, stderr: float | None = None) -> None:
        self.told = score, stderr


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (0.5, (0.5, None)),
        ((0.5, 0.1), (0.5, 0.1)),
        ({"score": np.float32(0.5), "stderr": 0.1, "other": 3}, (0.5, 0.1)),
        ({"score": 0.5, "stderr": "N/A"}, (0.5, None)),
    ],
)
def test_a_score_with_its_error_in_three_forms(result: Any, told: tuple[float, float]) -> None:
    heard = Heard()
    Evaluation(lambda checkpoint, task: result)(heard)
    assert heard.told == told


def test_a_score_that_cannot_be_is_refused() -> None:
    with pytest.raises(TableError):
        Evaluation(lambda checkpoint, task: (0.5, -1.0))(Heard())


def test_checkpoints_become_text_or_numbers() -> None:
    given = [Path("a/b"), np.int64(3), "x", 2.5]
    assert [plain_checkpoint(each) for each in given] == ["a/b", 3, "x", 2.5]
    for wrong in (True, None, [1]):
        with pytest.raises(StudyError, match="neither text nor a number"):
            plain_checkpoint(wrong)


def test_no_answer_claims_certainty() -> None:
    """All cells are measured, without a standard error: nothing is left to be unsure of but the
    scores themselves."""
    selection = scrimp.create_selection(
        "whole", checkpoints=[1000, 2000, 3000], tasks=["a", "b"], storage="memory://", seed=0
    )
    for place, step in enumerate([1000, 2000, 3000]):
        for task in ("a", "b"):
            selection.tell(step, task, 0.4 + 0.1 * place)
    answer = selection.recommend()
    assert "sampling error is not included" in str(answer) and ">0.99" in str(answer)
    for text in (str(answer), repr(answer), repr(selection.posterior())):
        assert "± 0" not in text and "loss 0" not in text
        assert "1.0" not in text and "=0.0" not in text


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_task_says_nothing_about_the_level_of_the_others(seed: int) -> None:
    """After two scores on one of four tasks the stated error includes the levels of the others."""
    levels = {"w": 0.25, "x": 0.0, "y": 0.1, "z": 0.3}

    def scored(checkpoint: int, task: str) -> float:
        return 0.4 + checkpoint / 40000 * (1.6 - checkpoint / 8000) + levels[task]

    steps = range(1000, 9000, 1000)
    selection = scrimp.create_selection(
        "early", checkpoints=steps, tasks=list(levels), storage="memory://", seed=seed
    )
    for _ in range(2):
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, scored(checkpoint, task))
    assert len({trial.config["task"] for trial in selection.history.trials}) == 1
    answer = selection.recommend()
    truth = np.mean([scored(answer.checkpoint, task) for task in levels])
    assert answer.expected_score is not None and answer.standard_error is not None
    assert abs(answer.expected_score - truth) < 2.0 * answer.standard_error
