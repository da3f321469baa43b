"""The evidence chooses the transform that generated the data, and the choice is part of the
state."""

import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.gp.marginal_likelihood import PartialFitNumbers
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_steps import Standardise, Winsorise, YeoJohnson
from scrimp.surrogates.target_transform import ChosenTransform, Transformed, _evidence
from scrimp.testing.models import SurrogateBattery

COLUMNS = (Column(), Column())
MODEL = ChosenTransform(
    ExactGP.over(COLUMNS),
    {"plain": (Standardise(),), "power": (Standardise(), YeoJohnson(), Standardise())},
)


def smooth(seed: int, count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of two inputs, with values that look normal."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, 2))
    return x, np.sin(5 * x[:, 0]) + np.cos(4 * x[:, 1]) + 0.5 * x[:, 0] * x[:, 1]


@pytest.mark.parametrize("seed", range(4))
def test_it_recognises_how_the_targets_were_made(seed: int) -> None:
    rng = np.random.default_rng(0)
    x, f = smooth(seed)
    assert MODEL.fit(Data(x, f), rng).state["choice"] == "plain"
    assert MODEL.fit(Data(x, np.exp(2 * f)), rng).state["choice"] == "power"


def test_the_evidence_is_that_of_the_targets_in_their_own_units() -> None:
    """Scaling all targets by 10 lowers the log density by n log 10, whatever the option."""
    x, f = smooth(1)
    for steps in MODEL.options.values():
        model = Transformed(MODEL.inner, (Winsorise(), *steps))
        once, tenfold = Data(x, f), Data(x, 10.0 * f)
        first = _evidence(model.fit(once, np.random.default_rng(0)), once)
        second = _evidence(model.fit(tenfold, np.random.default_rng(0)), tenfold)
        assert second - first == pytest.approx(-len(x) * np.log(10.0), rel=1e-3)


def test_the_choice_is_kept_until_the_data_have_grown_by_a_third() -> None:
    rng = np.random.default_rng(0)
    x, f = smooth(2, 60)
    state = MODEL.fit(Data(x[:30], np.exp(2 * f[:30])), rng).state
    assert (state["choice"], state["compared"]) == ("power", 30)
    # Plain targets now: with 39 points the old choice still stands, with 40 it is made anew.
    kept = MODEL.fit(Data(x[:39], f[:39]), rng, state).state
    assert (kept["choice"], kept["compared"]) == ("power", 30)
    anew = MODEL.fit(Data(x[:40], f[:40]), rng, state).state
    assert (anew["choice"], anew["compared"]) == ("plain", 40)


def test_restoring_and_growing_give_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    x, f = smooth(3)
    data, more = Data(x[:35], np.exp(f[:35])), Data(x[35:], np.exp(f[35:]))
    fitted = MODEL.fit(data, rng)
    restored = MODEL.restore(data, fitted.state)
    np.testing.assert_allclose(restored.posterior(x).mean, fitted.posterior(x).mean, rtol=1e-10)
    grown = fitted.condition(fitted.model_units(more))
    assert grown.state["choice"] == fitted.state["choice"]
    whole = MODEL.restore(Data(x, np.exp(f)), fitted.state)
    np.testing.assert_allclose(
        grown.posterior(x).mean, whole.posterior(x).mean, rtol=1e-6, atol=1e-8
    )


def test_diverged_targets_are_capped_for_every_option() -> None:
    x, f = smooth(4)
    wild = f.copy()
    wild[3] = 1e30
    fitted = MODEL.fit(Data(x, wild), np.random.default_rng(0))
    predicted = fitted.target_units(fitted.posterior(x).mean[:, 0])
    rest = np.arange(len(x)) != 3
    assert np.abs(predicted[rest] - f[rest]).max() < 0.7 and predicted[3] < 20


def test_a_fit_of_another_model_is_no_start_and_cannot_be_restored() -> None:
    x, f = smooth(1, 12)
    other = (
        Transformed(ExactGP.over(COLUMNS), (Standardise(),))
        .fit(Data(x, f), np.random.default_rng(0))
        .state
    )
    assert MODEL.fit(Data(x, f), np.random.default_rng(0), other).state["choice"] in MODEL.options
    with pytest.raises(
        StudyError, match="the recorded fit chose None, which is not an option here: fit again"
    ):
        MODEL.restore(Data(x, f), other)


@pytest.mark.parametrize("power", [False, True])
def test_of_many_data_a_part_makes_the_first_choice(
    power: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, f = smooth(5, 320)
    y = np.exp(2 * f) if power else f
    data = Data(x, y)
    quick = MODEL.fit(data, np.random.default_rng(0))
    monkeypatch.setattr(
        "scrimp.gp.marginal_likelihood.PARTIAL_FIT", PartialFitNumbers(whole_up_to=10_000)
    )
    slow = MODEL.fit(data, np.random.default_rng(0))
    assert quick.state["choice"] == slow.state["choice"] == ("power" if power else "plain")
    assert quick.state["compared"] == 320 and quick.state["model"]["inner"]["explored"] == 320
    assert "part" not in quick.state["model"]["inner"]
    assert _evidence(quick, data) >= _evidence(slow, data) - 0.05 * len(y)


class TestChosenTransform(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns: tuple[Column, ...]) -> ChosenTransform:
        options = {"plain": (Standardise(),), "power": (YeoJohnson(), Standardise())}
        return ChosenTransform(ExactGP.over(columns), options)
