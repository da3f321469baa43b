"""Models that are fitted once and kept."""

import numpy as np

from scrimp.transfer.past import NOTHING, Past
from scrimp.transfer.source_model import SourceFit
from scrimp.transfer.source_studies import source_study


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


def test_a_kept_fit_that_no_longer_fits_is_made_anew(past: Past) -> None:
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
