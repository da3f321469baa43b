import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from scrimp.surrogates.target_steps import (
    TargetStep,
    YeoJohnson,
    yeo_johnson,
    yeo_johnson_inverse,
)
from scrimp.testing.models import TargetStepBattery

EXPONENTS = [-1.0, -0.3, -1e-8, 0.0, 1e-8, 0.5, 1.0, 1.7, 2.0, 3.0]


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_formulas_agree_with_scipy_and_invert(exponent):
    signed = np.array([-20.0, -0.5, 0.0, 1e-3, 0.3, 9.0, 50.0])
    np.testing.assert_allclose(
        yeo_johnson(signed, exponent), stats.yeojohnson(signed, exponent), rtol=1e-7, atol=1e-12
    )
    np.testing.assert_allclose(
        yeo_johnson_inverse(yeo_johnson(signed, exponent), exponent), signed, rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(3))
def test_exponent_is_the_maximum_likelihood_one_with_the_summed_jacobian(seed):
    rng = np.random.default_rng(seed)
    signed = rng.gamma(2.0, 1.0, 80) - 1.0
    best = minimize_scalar(
        lambda e: -stats.yeojohnson_llf(e, signed), bounds=(-1.0, 3.0), method="bounded"
    ).x
    assert YeoJohnson(spread=1e6).learn(signed).state["exponent"] == pytest.approx(best, abs=1e-3)


def test_jacobian_is_summed_not_averaged():
    y = np.random.default_rng(0).gamma(2.0, 1.0, 50) - 1.0
    flat = YeoJohnson(spread=1e9)
    difference = flat.negative_log_likelihood(0.9, y) - flat.negative_log_likelihood(0.3, y)
    assert difference == pytest.approx(
        stats.yeojohnson_llf(0.3, y) - stats.yeojohnson_llf(0.9, y), rel=1e-9
    )


def test_few_or_constant_targets_keep_the_centre():
    assert YeoJohnson().learn(np.array([1.0, 2.0, 3.0, 9.0])).state["exponent"] == 1.0
    assert YeoJohnson().learn(np.ones(20)).state["exponent"] == 1.0


def test_skewed_targets_become_nearly_symmetric():
    y = np.random.default_rng(0).gamma(1.0, 1.0, 200) - 1.0
    assert abs(stats.skew(YeoJohnson().learn(y).forward(y))) < 0.3 < stats.skew(y)


def test_beyond_the_range_goes_to_its_end():
    assert np.isfinite(yeo_johnson_inverse(np.array([-100.0, 100.0]), -1.0)).all()


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 1.3, 2.0, 3.0])
def test_beyond_its_targets_a_step_goes_straight_on(exponent):
    family, low, high = YeoJohnson(), -2.0, 2.5
    step = family.recall({"exponent": exponent, "low": low, "high": high})
    inside, wide = np.linspace(low, high, 41), np.linspace(low - 5.0, high + 5.0, 401)
    np.testing.assert_allclose(step.forward(inside), yeo_johnson(inside, exponent), rtol=1e-12)
    np.testing.assert_allclose(step.backward(step.forward(wide)), wide, rtol=1e-6, atol=1e-8)
    small = 1e-6
    for end in (low, high):  # neither a jump nor a kink
        change = step.forward(np.array([end - small, end + small])) - step.forward(np.array([end]))
        np.testing.assert_allclose(
            np.abs(change), small * step.slope(np.array([end, end])), rtol=1e-4
        )
    numeric = (step.forward(wide + small) - step.forward(wide - small)) / (2 * small)
    np.testing.assert_allclose(step.slope(wide), numeric, rtol=1e-4)
    assert family.recall(step.state) == step


def test_a_wide_belief_is_shown_within_reason():
    y = -np.random.default_rng(0).lognormal(
        0.0, 1.0, 60
    )  # a long tail of good values: an exponent near its upper bound
    y = (y - y.mean()) / y.std()
    step = YeoJohnson(spread=10.0).learn(y)
    assert step.state["exponent"] > 2.0
    z = step.forward(y)
    shown = step.backward(np.array([z.min() - 3 * z.std(), z.max() + 3 * z.std()]))
    assert np.abs(shown).max() < 20 * np.abs(y).max()  # the bare inverse says -1e10 and worse
    assert (
        np.abs(yeo_johnson_inverse(np.array([z.min() - 3 * z.std()]), step.state["exponent"])).max()
        > 1e6
    )


class TestYeoJohnson(TargetStepBattery):
    def step(self) -> TargetStep:
        return YeoJohnson()
