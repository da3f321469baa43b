"""Means of many models side by side, against the models one after the other and finite
differences."""

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.surrogate import Array
from scrimp.transfer import source_models
from scrimp.transfer.past import Past
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.source_studies import SourceStudy
from scrimp.transfer.stacked_means import stacked_means


@pytest.fixture
def models(past: Past) -> SourceModels:
    """One of the studies knows the first column alone."""
    first = past.studies[0]
    narrow = SourceStudy("narrow", first.x, first.y, (0,))
    return Past((*past.studies, narrow), past.columns).models("z-score")


def rows(count: int) -> Array:
    rng = np.random.default_rng(3)
    x = rng.random((count, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], count)
    return x


def test_they_are_those_of_each_model(
    models: SourceModels, columns: tuple[Column, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrimp.transfer.stacked_means.MOST_NUMBERS", 700)  # several blocks
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
    monkeypatch.setattr(source_models, "MANY", 2)
    monkeypatch.setattr(source_models, "FEW", few)
    monkeypatch.setattr(source_models, "common_means", lambda *given: None)
    x = rows(6)
    found = models.on_common_points(columns, rows(40))
    assert found.stacked is not None and found.common is None
    assert found.means(x) == pytest.approx(models.means(x), abs=1e-10)
    d_means = np.ones((6, 5))
    assert found.means_and_pullback(x)[1](d_means) == pytest.approx(
        models.means_and_pullback(x)[1](d_means), abs=1e-9
    )
