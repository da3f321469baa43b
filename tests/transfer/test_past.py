"""Past studies with their models: fits that are kept, and models of many studies against one at a
time, scikit-learn and finite differences."""

import numpy as np
import pytest

from scrimp.acquisition.domain import Domain
from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.exact_gp import fitted_gp
from scrimp.surrogates.surrogate import Array, Data
from scrimp.transfer import past as past_module
from scrimp.transfer.past import (
    NOTHING,
    CommonMeans,
    ManyModelsNumbers,
    Past,
    SourceModels,
    StackedMeans,
    common_means,
    common_rows,
    stacked_means,
)
from scrimp.transfer.source_model import NORMALISERS, SourceFit, Units
from scrimp.transfer.source_study import SourceStudy, source_study


def numbers(monkeypatch: pytest.MonkeyPatch, **changed: int) -> None:
    """Change numbers of the module for one test."""
    monkeypatch.setattr(past_module, "NUMBERS", ManyModelsNumbers(**changed))


def test_a_fit_is_made_once_and_restored_afterwards(past: Past, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    kept: dict = {}  # type: ignore[type-arg]
    x = np.full((3, 3), 0.5)
    first = Past(past.studies, past.columns, kept=kept).models("z-score").means(x)
    assert len(kept) == 4

    def refuse(*arguments: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(SourceFit, "hyperparameters", refuse)
    assert np.array_equal(
        Past(past.studies, past.columns, kept=kept).models("z-score").means(x), first
    )


def test_a_kept_fit_that_no_longer_fits_is_made_again(past: Past) -> None:
    kept: dict = {}  # type: ignore[type-arg]
    fresh = Past(past.studies[:1], past.columns, kept=kept)
    fresh.models("z-score")
    (key,) = kept
    kept[key] = {"parameters": {"length_scale": [1.0]}, "explored": 1}
    again = Past(past.studies[:1], past.columns, kept=kept).models("z-score")
    assert len(again) == 1 and len(kept[key]["parameters"]["length_scale"]) == 3


def test_linear_normalisers_share_a_fit(past: Past) -> None:
    assert past.models("none") is past.models("z-score") and past.models("min-max") is past.models(
        "z-score"
    )
    assert past.models("copula") is not past.models("z-score")


def test_without_one_shares_the_models_of_the_others(past: Past) -> None:
    some = past.without("past1")
    assert some.models("z-score").names == ("past0", "past2", "past3")
    assert some.models("z-score").models[1] is past.models("z-score").models[2]


def test_progress_is_shown_only_when_something_is_to_be_fitted(past: Past) -> None:
    seen: list[int] = []

    def progress(studies, count):  # type: ignore[no-untyped-def]
        seen.append(count)
        yield from studies

    kept: dict = {}  # type: ignore[type-arg]
    for _ in range(2):
        Past(past.studies, past.columns, kept=kept, progress=progress).models("z-score")
    assert seen == [4]


def test_nothing_is_nothing() -> None:
    assert len(NOTHING) == 0


def test_what_all_expect_is_the_average_of_their_models(past: Past) -> None:
    x = np.random.default_rng(0).random((5, 3))
    x[:, 2] = 0.5
    means = past.models("z-score").means(x)
    assert np.allclose(past.expected(x), means.mean(axis=1))
    assert NOTHING.expected(x).shape == (0,)
    d = np.arange(1.0, 6.0)
    step = np.array([1e-5, 0.0, 0.0])
    numeric = d * (past.expected(x + step) - past.expected(x - step)) / 2e-5
    assert np.allclose(past.expected_pullback(x, d)[:, 0], numeric, atol=1e-5)


def test_noise_teaches_nothing_to_methods_with_budgets(past: Past) -> None:
    """However few rows there are: eight or sixty of them, shuffled."""
    rng = np.random.default_rng(0)
    for count in (8, 60):
        noise = [
            source_study(f"noise{k}", rng.random((count, 3)), rng.standard_normal(count))
            for k in range(8)
        ]
        found = Past(tuple(noise), past.columns)
        assert len(found.teaching) <= 3
    mixed = Past((*past.studies, noise[-1]), past.columns)
    assert mixed.teaching.names == past.models("z-score").names
    useless = Past((noise[-1],), past.columns)
    assert useless.length_scales() == () and not len(useless.expected(np.zeros((2, 3))))


# --- models of many studies -----------------------------------------------------------------------


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


def test_units_of_the_new_study(sources: SourceModels, x: Array) -> None:
    """Raw losses: the past mean in its own units, then in z-scores of the new study."""
    normaliser, here = NORMALISERS["none"], np.array([10.0, 14.0])
    present = normaliser.of_target(here)
    moved = sources.in_units(normaliser, present)
    raw = np.stack([m.study.y.mean() + m.study.y.std() * m.mean(x) for m in sources.models], axis=1)
    assert moved.means(x) == pytest.approx((raw - 12.0) / 2.0)
    assert moved.variances(x, [1]) == pytest.approx(
        sources.variances(x, [1]) * (sources.models[1].study.y.std() / 2.0) ** 2
    )


def test_common_points_serve_where_data_are_many(
    sources: SourceModels,
    columns: tuple[Column, ...],
    x: Array,
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    rows = np.random.default_rng(3).random((300, 3))
    rows[:, 2] = np.random.default_rng(4).choice([0.0, 0.5, 1.0], 300)
    assert sources.on_common_points(columns, rows) is sources  # 100 observations are few
    numbers(monkeypatch, min_observations_for_common_points=10)
    common = sources.on_common_points(columns, rows, uncertain=True)
    assert isinstance(common.fast, CommonMeans) and common.spread is not None
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


def test_informed_models_have_seen_the_new_study(sources: SourceModels, x: Array) -> None:
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
    model = SourceFit(columns).fit(source_study("a", x, y), NORMALISERS["log-regret"].steps)
    assert model.losses(np.asarray(model.whole.data.y)) == pytest.approx(y)


def test_expected_length_scales_lie_between_the_past_and_what_is_usual(
    columns: tuple[Column, ...],
) -> None:
    rng = np.random.default_rng(1)
    rows = np.full((15, 3), 0.5)
    rows[:, 0] = rng.random(15)
    model = SourceFit(columns).fit(SourceStudy("p", rows, rows[:, :1] ** 2, (0,)), Z)
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
    numbers(
        monkeypatch,
        min_observations_for_common_points=1,
        max_observations_for_exact_means=long,
    )
    monkeypatch.setattr(
        past_module, "common_means", lambda kernel, rows, means, held, share: asked.append(share)
    )
    sources.on_common_points(columns, x)
    assert asked == [least]


# --- common points --------------------------------------------------------------------------------


def test_smooth_means_are_kept_and_rough_ones_declined() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((160, 2))
    kernel = Matern52((Column(), Column())).with_values(np.array([0.5, 0.7]))
    smooth = np.stack(
        [np.sin(3 * points[:, 0]) + points[:, 1], points[:, 0] * points[:, 1]], axis=1
    )
    found = common_means(kernel, points, smooth, 40)
    assert found is not None
    new = rng.random((50, 2))
    truth = np.stack([np.sin(3 * new[:, 0]) + new[:, 1], new[:, 0] * new[:, 1]], axis=1)
    assert found(new) == pytest.approx(truth, abs=0.02)
    assert common_means(kernel, points, rng.standard_normal((160, 2)), 40) is None


def test_at_the_common_points_means_are_exact() -> None:
    points = np.random.default_rng(1).random((60, 1))
    values = np.cos(4 * points)
    found = common_means(Matern52((Column(),)), points, values, 10)
    assert found is not None
    assert found(points[:50]) == pytest.approx(values[:50], abs=1e-3)


def test_common_rows_are_legal_and_follow_from_the_seed() -> None:
    domain = Domain((Column(), Column((0.0, 1.0), ordered=False)))
    tried = domain.sample(30, np.random.default_rng(5))
    rows = common_rows(domain, tried, 3)
    assert np.array_equal(rows, common_rows(domain, tried, 3))
    assert np.array_equal(domain.snap(rows), rows) and len(np.unique(rows, axis=0)) == len(rows)


# --- stacked means --------------------------------------------------------------------------------


@pytest.fixture
def models(past: Past) -> SourceModels:
    """One of the studies knows the first column alone."""
    first = past.studies[0]
    narrow = SourceStudy("narrow", first.x, first.losses, (0,))
    return Past((*past.studies, narrow), past.columns).models("z-score")


def rows(count: int) -> Array:
    rng = np.random.default_rng(3)
    x = rng.random((count, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], count)
    return x


def test_they_are_those_of_each_model(
    models: SourceModels, columns: tuple[Column, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers(monkeypatch, max_block=700)
    x, stacked = rows(17), stacked_means(models.models, columns)
    assert stacked is not None
    one_by_one = np.stack([model.mean(x) for model in models.models], axis=1)
    assert stacked(x) == pytest.approx(one_by_one, abs=1e-10)
    assert stacked.and_pullback(x)[0] == pytest.approx(one_by_one, abs=1e-10)
    assert stacked(x[:0]).shape == (0, 5)


def test_pullback(models: SourceModels, columns: tuple[Column, ...]) -> None:
    x, stacked = rows(4), stacked_means(models.models, columns)
    assert stacked is not None
    d_means = np.random.default_rng(1).standard_normal((4, 5))
    found = stacked.and_pullback(x)[1](d_means)
    assert not found[:, 2].any()  # a choice has no gradient
    for column in (0, 1):
        step = np.zeros(3)
        step[column] = 1e-5
        moved = (stacked(x + step) - stacked(x - step)) / 2e-5
        assert found[:, column] == pytest.approx((moved * d_means).sum(axis=1), abs=1e-6)


def test_another_kernel_is_not_stacked(past: Past, columns: tuple[Column, ...]) -> None:
    assert stacked_means(past.models("z-score", "rbf-ard").models, columns) is None


@pytest.mark.parametrize("few", [10**9, 1], ids=["few observations", "no common points"])
def test_many_models_are_stacked(
    models: SourceModels, columns: tuple[Column, ...], monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    numbers(monkeypatch, min_models_to_stack=2, min_observations_for_common_points=few)
    monkeypatch.setattr(past_module, "common_means", lambda *given: None)
    x = rows(6)
    found = models.on_common_points(columns, rows(40))
    assert isinstance(found.fast, StackedMeans)
    assert found.means(x) == pytest.approx(models.means(x), abs=1e-10)
    d_means = np.ones((6, 5))
    assert found.means_and_pullback(x)[1](d_means) == pytest.approx(
        models.means_and_pullback(x)[1](d_means), abs=1e-9
    )


def test_each_metric_has_the_studies_that_teach_it(past: Past) -> None:
    """Two metrics, of which one study has the second alone; a part of the past shares the models of
    the whole."""
    first, second = past.studies[:2]
    both = SourceStudy("both", first.x, np.column_stack([first.y, -first.y]), (0, 1, 2))
    lacking = np.column_stack([np.full(len(second.y), np.nan), second.y])
    one = SourceStudy("one", second.x, lacking, (0, 1, 2))
    found = Past((both, one), past.columns)
    assert found.metrics == 2 and [len(own) for own in found.each_metric] == [1, 2]
    assert found.models("z-score").names == ("both",)
    whole = found.each_metric[1].models("z-score").models
    part = found.only(["one"])
    assert part.each_metric[1].models("z-score").models == whole[1:]
    assert part.length_scales() == () and part.curves() == []
