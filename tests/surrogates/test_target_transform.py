import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.surrogates.ensembles import PosteriorEnsemble, SliceSettings
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_steps import (
    GaussianCopula,
    Standardise,
    Winsorise,
    YeoJohnson,
)
from scrimp.surrogates.target_transform import Transformed
from scrimp.testing.models import SurrogateBattery


class TestStandardised(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Transformed(ExactGP.over(columns), (Standardise(),))


class TestYeoJohnson(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Transformed(
            ExactGP.over(columns), (Winsorise(100.0), Standardise(), YeoJohnson(), Standardise())
        )


class TestCopula(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return Transformed(ExactGP.over(columns), (GaussianCopula(),))


class TestNestedAroundAnEnsemble(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        ensemble = PosteriorEnsemble(
            ExactGP.over(columns), SliceSettings(draws=20, burn_in=10, thin=5)
        )
        return Transformed(Transformed(ensemble, (Standardise(),)), (YeoJohnson(),))


def test_a_record_of_another_transform_is_refused():
    model = Transformed(ExactGP.over((Column(),)), (Standardise(),))
    with pytest.raises(StudyError, match="fit again"):
        model.restore(Data(np.zeros((1, 1)), np.zeros(1)), {"steps": [], "inner": {}})


def test_incumbent_margin_and_fantasies_live_in_model_units():
    rng = np.random.default_rng(0)
    x = rng.random((30, 2))
    y = 1e4 + 500.0 * np.sin(4 * x[:, 0]) + 100.0 * x[:, 1]
    noise = np.full(30, 25.0)
    fitted = Transformed(ExactGP.over((Column(), Column())), (Standardise(),)).fit(
        Data(x, y, noise), rng
    )
    assert fitted.data.y.std() == pytest.approx(1.0) and fitted.data.y.argmin() == y.argmin()
    np.testing.assert_allclose(fitted.data.noise, 25.0 / y.var())
    shown = fitted.target_units(fitted.posterior(x).mean[:, 0])
    assert np.abs(shown - y).max() < 50.0
    # a fantasy drawn from the posterior goes back as it is
    point = rng.random((1, 2))
    draw = fitted.sample(point, 1, rng)
    grown = fitted.condition(Data(point, draw[:, 0]))
    assert abs(grown.posterior(point).mean[0, 0] - draw[0, 0]) < 0.2
    assert grown.model_units(Data(point, np.array([y.mean()]))).y == pytest.approx(0.0, abs=1e-9)
