"""From models to weights, rule by rule."""

import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_steps import Standardise
from scrimp.surrogates.target_transform import FittedTransformed, Transformed
from scrimp.transfer.past import SourceModels
from scrimp.transfer.weights import WeightRule, distance_weights, rank_distances


def weighing(
    rule: str, dilution: str = "none", draws: str = "bootstrap", horizon: int = 50
) -> WeightRule:
    return WeightRule(rule, dilution, 0.5, draws, 60, 0.0, horizon)


def target(
    columns: tuple[Column, ...], count: int, shift: float = 0.0, sign: float = 1.0
) -> FittedTransformed:
    rng = np.random.default_rng(20)
    x = rng.random((count, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], count)
    y = sign * ((x[:, 0] - 0.4 - shift) ** 2 + 0.5 * (x[:, 1] - 0.6) ** 2 + 0.2 * (x[:, 2] > 0.25))
    return Transformed(ExactGP.over(columns), (Standardise(),)).fit(Data(x, y), rng)


def test_features_give_constant_weights(sources: SourceModels, columns: tuple[Column, ...]) -> None:
    """Rows 0, 1, 2, 3 against 3: distances by the range, a feature that all share alike counts
    nothing."""
    few, many = target(columns, 3), target(columns, 9)
    rng = np.random.default_rng(0)
    weights = weighing("features").weights_of(
        few, sources, {"rows": 3.0, "classes": 2.0, "unknown": 1.0}, rng
    )
    distances = np.array([3.0, 2.0, 1.0, 0.0]) / 3.0 / np.sqrt(2.0)
    assert weights == pytest.approx(distance_weights(distances, 0.5))
    assert np.array_equal(
        weights,
        weighing("features").weights_of(
            many, sources, {"rows": 3.0, "classes": 2.0, "unknown": 1.0}, rng
        ),
    )


def test_without_shared_features_all_studies_are_alike(
    sources: SourceModels, columns: tuple[Column, ...]
) -> None:
    weights = weighing("features").weights_of(
        target(columns, 3), sources, {}, np.random.default_rng(0)
    )
    assert weights == pytest.approx(np.full(5, 0.2))


def test_ranks_follow_the_evidence(sources: SourceModels, columns: tuple[Column, ...]) -> None:
    model = target(columns, 9)
    weights = weighing("ranks").weights_of(model, sources, {}, np.random.default_rng(0))
    distances = rank_distances(sources.means(model.data.x), np.asarray(model.data.y))
    assert weights == pytest.approx(distance_weights(distances, 0.5))


def test_experts_share_half(sources: SourceModels, columns: tuple[Column, ...]) -> None:
    weights = weighing("experts").weights_of(
        target(columns, 3), sources, {}, np.random.default_rng(0)
    )
    assert weights.tolist() == [0.125] * 4 + [0.5]


@pytest.mark.parametrize("draws", ["bootstrap", "posterior"])
def test_ranking_is_uniform_before_three_evaluations_and_then_learns(
    sources: SourceModels, columns: tuple[Column, ...], draws: str
) -> None:
    rng = np.random.default_rng(0)
    rule = weighing("ranking", draws=draws)
    assert rule.weights_of(target(columns, 2), sources, {}, rng) == pytest.approx(np.full(5, 0.2))
    similar = rule.weights_of(
        target(columns, 8), sources, {}, rng
    )  # the very function of past study 0
    assert similar.sum() == pytest.approx(1.0) and similar[:2].sum() > 0.5
    opposite = rule.weights_of(target(columns, 12, sign=-1.0), sources, {}, rng)
    assert opposite[-1] > 0.9


def test_near_the_horizon_everything_is_dropped(
    sources: SourceModels, columns: tuple[Column, ...]
) -> None:
    model = target(columns, 8)
    rule = weighing("ranking", "probabilistic", horizon=8)
    assert rule.weights_of(model, sources, {}, np.random.default_rng(0)).tolist() == [0.0] * 4 + [
        1.0
    ]


def test_percentile_drops_what_is_clearly_worse(
    sources: SourceModels, columns: tuple[Column, ...]
) -> None:
    model = target(columns, 12, sign=-1.0)
    weights = weighing("ranking", "percentile").weights_of(
        model, sources, {}, np.random.default_rng(0)
    )
    assert weights.tolist() == [0.0] * 4 + [1.0]


def test_leave_one_out_leaves_out(columns: tuple[Column, ...]) -> None:
    """The target is judged without the point it predicts: with hyperparameters of the full fit,
    refitted on the rest."""
    model = target(columns, 7)
    assert isinstance(model.inner, FittedGP)
    left_out = model.inner.leave_one_out().mean[:, 0]
    for row in range(7):
        rest = np.arange(7) != row
        data = Data(model.data.x[rest], np.asarray(model.data.y)[rest])
        alone = ExactGP.over(columns).restore(data, model.inner.state)
        assert left_out[row] == pytest.approx(
            alone.mean(model.data.x[row : row + 1])[0, 0], abs=1e-6
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ("magic", "none", 0.1, "bootstrap"),
            "weights is 'magic'; it must be one of features, ranks, ranking, experts",
        ),
        (("ranks", "magic", 0.1, "bootstrap"), "dilution is 'magic'"),
        (("ranks", "none", 0.0, "bootstrap"), "bandwidth is 0.0; it must be above 0"),
        (("ranks", "none", 0.1, "magic"), "draws is 'magic'"),
    ],
)
def test_bad_settings(settings: tuple[str, str, float, str], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        WeightRule(*settings, 100, 0.0, 50)


def test_distances_as_published_and_ties_by_either_rule(
    sources: SourceModels, columns: tuple[Column, ...]
) -> None:
    """Rows 0, 1, 2, 3 against 3, unscaled; ties that posterior draws give to the new study may
    be shared instead."""
    rng = np.random.default_rng(0)
    plain = WeightRule("features", "none", 2.5, "bootstrap", 60, 0.0, 50, distance="euclidean")
    weights = plain.weights_of(target(columns, 3), sources, {"rows": 3.0, "classes": 2.0}, rng)
    assert weights == pytest.approx(distance_weights(np.array([3.0, 2.0, 1.0, 0.0]), 2.5))
    own = {}
    for ties in ("by draws", "target", "shared"):
        rule = WeightRule("ranking", "none", 0.5, "posterior", 200, 0.0, 50, ties=ties)
        own[ties] = float(
            rule.weights_of(target(columns, 3), sources, {}, np.random.default_rng(1))[-1]
        )
    assert own["by draws"] == own["target"] > own["shared"]
