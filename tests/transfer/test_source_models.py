"""Models of past studies against scikit-learn, finite differences and plain sums."""

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import fitted_gp
from scrimp.surrogates.surrogate import Array, Data
from scrimp.transfer import source_models
from scrimp.transfer.normalise import NORMALISERS, Units
from scrimp.transfer.source_model import SourceFit
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.source_studies import SourceStudy

Z = NORMALISERS["z-score"].steps


@pytest.fixture
def x() -> Array:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.1, 0.9, (6, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 6)
    return x


def test_pullbacks(sources: SourceModels, x: Array) -> None:
    rng = np.random.default_rng(2)
    scaled = SourceModels(sources.models, tuple(Units(0.3, 2.0 + k) for k in range(4)))
    for some in (sources, scaled):
        d_means, d_variances = rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
        _, back = some.means_and_pullback(x)
        variances, back_variances = some.variances_and_pullback(x, [2, 0])
        assert variances == pytest.approx(some.variances(x, [2, 0]))
        for column in (0, 1):
            step = np.zeros(3)
            step[column] = 1e-5
            moved = (some.means(x + step) - some.means(x - step)) / 2e-5
            assert back(d_means)[:, column] == pytest.approx(
                (moved * d_means).sum(axis=1), abs=1e-5
            )
            moved = (some.variances(x + step, [2, 0]) - some.variances(x - step, [2, 0])) / 2e-5
            assert back_variances(d_variances)[:, column] == pytest.approx(
                (moved * d_variances).sum(axis=1), abs=1e-4
            )


def test_units_of_the_study_at_hand(sources: SourceModels, x: Array) -> None:
    """Raw losses: the past mean in its own units, then in z-scores of the study at hand."""
    normaliser, here = NORMALISERS["none"], np.array([10.0, 14.0])
    present = normaliser.of_target(here)
    moved = sources.in_units(normaliser, present)
    raw = np.stack([m.study.y.mean() + m.study.y.std() * m.mean(x) for m in sources.models], axis=1)
    assert moved.means(x) == pytest.approx((raw - 12.0) / 2.0)
    assert moved.variances(x, [1]) == pytest.approx(
        sources.variances(x, [1]) * (sources.models[1].study.y.std() / 2.0) ** 2
    )


def test_common_points_serve_where_data_are_many(
    sources: SourceModels, columns: tuple[Column, ...], x: Array
) -> None:
    from scrimp.transfer import source_models

    rows = np.random.default_rng(3).random((300, 3))
    rows[:, 2] = np.random.default_rng(4).choice([0.0, 0.5, 1.0], 300)
    assert sources.on_common_points(columns, rows) is sources  # 100 observations are few
    before, source_models.FEW = source_models.FEW, 10
    try:
        common = sources.on_common_points(columns, rows, uncertain=True)
    finally:
        source_models.FEW = before
    assert common.common is not None and common.spread is not None
    assert np.sqrt(common.variances(x, [3, 1])) == pytest.approx(
        np.sqrt(sources.variances(x, [3, 1])), rel=0.35
    )
    variances, back = common.variances_and_pullback(x, [3, 1])
    assert variances == pytest.approx(common.variances(x, [3, 1]))
    step, d = np.array([1e-5, 0.0, 0.0]), np.random.default_rng(6).standard_normal(variances.shape)
    moved = (common.variances(x + step, [3, 1]) - common.variances(x - step, [3, 1])) / 2e-5
    assert back(d)[:, 0] == pytest.approx((moved * d).sum(axis=1), abs=1e-5)
    assert common.means(x) == pytest.approx(sources.means(x), abs=0.1)
    means, back = common.means_and_pullback(x)
    assert means == pytest.approx(common.means(x))
    weights = np.random.default_rng(5).standard_normal(means.shape)
    step = np.array([1e-5, 0.0, 0.0])
    moved = (common.means(x + step) - common.means(x - step)) / 2e-5
    assert back(weights)[:, 0] == pytest.approx((moved * weights).sum(axis=1), abs=1e-5)


def test_informed_models_have_seen_the_study_at_hand(sources: SourceModels, x: Array) -> None:
    """Against a fit of the same process to both together, targets in the past study's own units."""
    scaled = SourceModels(sources.models, tuple(Units(0.3, 2.0) for _ in range(4)))
    seen = Data(x[:3], np.array([1.0, -1.0, 0.5]))
    informed, model = scaled.informed(seen), sources.models[1]
    both = Data(
        np.vstack([model.small.observed.x, seen.x]),
        np.append(model.small.observed.y, (seen.y - 0.3) / 2.0),
    )
    whole = fitted_gp(model.small.prior, model.small.noise, both, {})
    assert informed.means(x)[:, 1] == pytest.approx(0.3 + 2.0 * whole.mean(x)[:, 0])
    assert informed.variances(x, [1])[:, 0] == pytest.approx(4.0 * whole.posterior(x).variance)


def test_losses_undo_the_normaliser(columns: tuple[Column, ...], x: Array) -> None:
    y = np.linspace(3.0, 9.0, 6)
    model = SourceFit(columns).fit(
        SourceStudy("a", x, y, (0, 1, 2)), NORMALISERS["log-regret"].steps
    )
    assert model.losses(np.asarray(model.whole.data.y)) == pytest.approx(y)


def test_expected_length_scales_lie_between_the_past_and_what_is_usual(
    columns: tuple[Column, ...],
) -> None:
    rng = np.random.default_rng(1)
    rows = np.full((15, 3), 0.5)
    rows[:, 0] = rng.random(15)
    model = SourceFit(columns).fit(SourceStudy("p", rows, rows[:, 0] ** 2, (0,)), Z)
    usual = np.sqrt(2.0) + 0.5 * np.log(3.0)
    expected = np.log(SourceModels((model, model)).expected_length_scales())
    assert expected == pytest.approx(
        [(2.0 * model.log_length_scales[0] + usual) / 3.0, usual, usual]
    )


@pytest.mark.parametrize(("long", "least"), [(10**6, 0.98), (50, 0.9)])
def test_long_pasts_may_lose_a_little_more(
    sources: SourceModels,
    columns: tuple[Column, ...],
    x: Array,
    monkeypatch: pytest.MonkeyPatch,
    long: int,
    least: float,
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(source_models, "FEW", 1)
    monkeypatch.setattr(source_models, "LONG", long)
    monkeypatch.setattr(
        source_models, "common_means", lambda kernel, rows, means, held, share: asked.append(share)
    )
    sources.on_common_points(columns, x)
    assert asked == [least]
