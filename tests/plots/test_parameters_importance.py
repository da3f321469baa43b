"""Shares of variance against known ones."""

import numpy as np
import pytest

import scrimp
from scrimp.plots.models import landscape_of
from scrimp.plots.parameters import INTERACTIONS, bins_of, importances, main_effects
from scrimp.threads import one_thread


def test_a_sum_of_two_parameters(whole: scrimp.Study) -> None:
    """score = 3 a + b over the unit square: Var = 9/12 + 1/12, so the shares are 0.9, 0.1 and 0."""
    shares = importances(whole.history, landscape_of(whole.history))
    assert shares["a"][0] == pytest.approx(0.9, abs=0.02) and shares["b"][0] == pytest.approx(
        0.1, abs=0.02
    )
    assert shares["c"][0] < 0.01 and shares[INTERACTIONS][0] < 0.03
    assert all(low - 1e-9 <= high for _, low, high in shares.values())
    assert shares["a"][1] > shares["b"][2]  # the whiskers do not meet


def test_the_ishigami_function() -> None:
    """First-order indices 0.3139, 0.4424, 0 with a = 7, b = 0.1 (Saltelli et al., Global
    Sensitivity Analysis, 2008)."""
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, (4096, 3))
    f = np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    everywhere = np.full(len(x), True)
    shares = [main_effects(f[None, :], bins_of(x[:, k]), everywhere)[0] for k in range(3)]
    assert shares == pytest.approx([0.3139, 0.4424, 0.0], abs=0.035)


def test_noise_gets_no_credit() -> None:
    """Without the correction 16 bins of 64 places would explain 1.5% of pure noise; with it
    nothing, on average."""
    rng = np.random.default_rng(1)
    bins = bins_of(rng.random(1024))
    noise = rng.normal(size=(400, 1024))
    raw = np.array(
        [np.var([row[bins == b].mean() for b in range(16)]) / row.var() for row in noise]
    )
    assert raw.mean() == pytest.approx(15 / 1024, rel=0.1)
    assert (
        main_effects(noise, bins, np.full(1024, True)).mean() < 0.004
    )  # cut off at 0, so a little above it


def test_a_conditional_parameter_is_judged_where_it_exists() -> None:
    """f jumps by 1 with the parent and does not depend on the child, which exists in half of the
    places."""
    rng = np.random.default_rng(2)
    there = np.arange(1000) % 2 == 0
    child = np.where(there, rng.random(1000), 0.5)
    f = there.astype(float)[None, :]
    assert main_effects(f, there.astype(np.intp), np.full(1000, True))[0] == pytest.approx(1.0)
    assert main_effects(f, bins_of(child), there)[0] == 0.0


def test_bins() -> None:
    assert bins_of(np.array([0.5, 0.0, 0.5])).tolist() == [1, 0, 1]
    assert np.bincount(bins_of(np.random.default_rng(0).random(160))).tolist() == [10] * 16


def test_the_bars_are_the_shares(staged: scrimp.Study) -> None:
    with one_thread():  # two threads round otherwise than one
        picture = scrimp.plots.importance(staged)
        shares = importances(staged.history, landscape_of(staged.history))
    (bars,) = picture.data
    assert dict(zip(bars.y, bars.x, strict=True)) == {
        name: share[0] for name, share in shares.items()
    }
    assert bars.y[-1] == "lr" and picture.layout.title.text.endswith(
        "after 1 epoch, within what was tried"
    )


def test_pools_are_judged_over_their_members() -> None:
    space = scrimp.Space(x=scrimp.Int(0, 3), y=scrimp.Int(0, 3))
    pool = scrimp.Pool(space, [{"x": x, "y": y} for x in range(4) for y in range(4)])
    study = scrimp.create_study("p", pool, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=16)
    shares = importances(study.history, landscape_of(study.history))
    assert shares["x"][0] == pytest.approx(1.0, abs=0.05) and shares["y"][0] < 0.02
