import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as peer
from sklearn.gaussian_process.kernels import Matern

from scrimp.errors import MethodError
from scrimp.gp import stationary as catalog
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, Normal
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import (
    RBF,
    Matern32,
    Matern52,
    Stationary,
    kernel_by_name,
    length_scale_parameter,
    matern52,
    matern52_and_slope,
    matern52_by_length,
    register_kernel,
)
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.testing.models import KernelBattery, rows


class TestMatern52(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Matern52(columns)


class TestMatern52OneLengthScale(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Scaled(Matern52(columns, ard=False))


class TestMatern52ContinuousOnly(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (Column(),) * 5

    @pytest.fixture
    def kernel(self, columns):
        return Scaled(Matern52(columns))


class TestMatern52CategoricalOnly(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (
            Column((0.0, 1.0), ordered=False),
            Column((0.0, 1 / 3, 2 / 3, 1.0), ordered=False),
            Column((0.0,), ordered=False),
        )

    @pytest.fixture
    def kernel(self, columns):
        return Matern52(columns)


class TestMatern32(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return Matern32(columns)


class TestRBF(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return RBF(columns)


class RationalQuadratic(Stationary):
    """What an author outside the package writes: a profile and its slope."""

    def profile_and_slope(self, r2):
        return 1.0 / (1.0 + 0.5 * r2), -0.5 / (1.0 + 0.5 * r2) ** 2


class TestWrittenOutside(KernelBattery):
    @pytest.fixture
    def kernel(self, columns):
        return RationalQuadratic(columns)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Matern52, lambda length: peer.Matern(length, nu=2.5)),
        (Matern32, lambda length: peer.Matern(length, nu=1.5)),
        (RBF, lambda length: peer.RBF(length)),
    ],
)
def test_agrees_with_scikit_learn(ours, theirs):
    rng = np.random.default_rng(0)
    x1, x2, length = rng.random((9, 4)), rng.random((6, 4)), rng.uniform(0.2, 2.0, 4)
    kernel = ours((Column(),) * 4).with_values(length)
    np.testing.assert_allclose(kernel(x1, x2), theirs(length)(x1, x2), rtol=1e-10)


def test_categories_are_at_squared_distance_one_inside_the_same_distance():
    columns = (Column(), Column((0.0, 0.5, 1.0), ordered=False), Column((0.0, 1.0), ordered=False))
    rng = np.random.default_rng(1)
    x, length = rows(columns, 15, rng), np.array([0.7, 1.3, 0.4])
    number = cdist(x[:, :1], x[:, :1]) ** 2 / length[0] ** 2
    r2 = number + sum((x[:, None, k] != x[None, :, k]) / length[k] ** 2 for k in (1, 2))
    np.testing.assert_allclose(
        RBF(columns).with_values(length)(x, x), np.exp(-0.5 * r2), rtol=1e-10
    )


def test_distances_survive_large_offsets_and_tiny_gaps():
    x = 0.5 + 1e-6 * np.arange(5.0)[:, None]
    kernel = Matern52((Column(),)).with_values(np.array([0.02]))
    s = np.sqrt(5.0) * np.abs(x - x.T) / 0.02
    np.testing.assert_allclose(kernel(x, x), (1 + s + s * s / 3) * np.exp(-s), rtol=1e-13)


def test_length_scale_prior_grows_with_the_square_root_of_the_dimension():
    four, sixteen = (
        length_scale_parameter((Column(),) * 4),
        length_scale_parameter((Column(),) * 16),
    )
    assert sixteen.density.mode == pytest.approx(2.0 * four.density.mode)
    assert four.size == 4 and length_scale_parameter((Column(),) * 4, ard=False).size == 1


def test_length_scale_prior_can_be_replaced():
    own = Hyperparameter(
        "bandwidth", Normal(1.55, 1.0), bounds=(0.1, 3.0), encoding="identity", size=2
    )
    kernel = Matern52((Column(), Column()), length_scale=own)
    assert kernel.parameters == (own,)
    np.testing.assert_array_equal(kernel.values, [1.55, 1.55])


def test_what_is_expected_along_columns_centres_the_density():
    columns = (Column(scale=0.3), Column(), Column(scale=4.0))
    (parameter,) = Matern52(columns).parameters
    usual = length_scale_parameter((Column(),) * 3).density
    assert (
        parameter.density.mu == pytest.approx((np.log(0.3), usual.mu, np.log(4.0)))
        and parameter.size == 3
    )
    assert parameter.density.sigma == usual.sigma
    assert Matern52(columns, ard=False).parameters == (
        length_scale_parameter((Column(),) * 3, ard=False),
    )
    assert Matern52((Column(), Column())).parameters == (length_scale_parameter((Column(),) * 2),)


SQUARED = np.array([[0.0, 0.1, 1.0], [2.5, 9.0, 400.0]])


def test_values_are_those_of_scikit_learn() -> None:
    reference = Matern(nu=2.5)(np.zeros((1, 1)), np.sqrt(SQUARED).reshape(-1, 1)).reshape(2, 3)
    assert matern52(SQUARED) == pytest.approx(reference, rel=1e-12)
    assert matern52_and_slope(SQUARED)[0] == pytest.approx(reference, rel=1e-12)


def test_slopes_are_derivatives_by_the_squared_distance() -> None:
    step, inside = 1e-6, SQUARED[SQUARED > 0]
    numerical = (matern52(inside + step) - matern52(inside - step)) / (2 * step)
    assert matern52_and_slope(inside)[1] == pytest.approx(numerical, abs=1e-8)


def test_the_derivative_by_the_logarithm_of_the_length() -> None:
    positions, length, step = np.array([0.0, 0.3, 1.1]), 0.7, 1e-6
    value, slope = matern52_by_length(positions, length)
    more, less = (matern52_by_length(positions, length * np.exp(k * step))[0] for k in (1, -1))
    assert value == pytest.approx(Matern(length, nu=2.5)(positions[:, None]), rel=1e-12)
    assert slope == pytest.approx((more - less) / (2 * step), abs=1e-8)


COLUMNS = (Column(), Column(), Column((0.0, 1.0), ordered=False))


@pytest.mark.parametrize(
    "name",
    ["matern52-ard", "matern52-noard", "matern32-ard", "matern32-noard", "rbf-ard", "rbf-noard"],
)
def test_every_built_in_name(name):
    kernel = kernel_by_name(name, COLUMNS)
    assert len(kernel.values) == 1 + (1 if name.endswith("noard") else 3)
    assert name in catalog._FACTORIES


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(MethodError, match=r"no kernel 'matern72' among .*matern52-ard"):
        kernel_by_name("matern72", COLUMNS)


def test_a_kernel_registered_from_outside_is_selectable_by_name(monkeypatch):
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())

    class Matern32(Stationary):
        def profile_and_slope(self, r2):
            root = np.sqrt(3.0 * r2)
            decay = np.exp(-root)
            return (1.0 + root) * decay, -1.5 * decay

    register_kernel("outside", lambda columns: Scaled(Matern32(columns)) + RBF(columns))
    x = np.random.default_rng(0).random((5, 3))
    expected = kernel_by_name("matern32-ard", COLUMNS)(x, x) + RBF(COLUMNS)(x, x)
    np.testing.assert_allclose(kernel_by_name("outside", COLUMNS)(x, x), expected)
    assert "outside" in catalog._FACTORIES
    assert ExactGP.over(COLUMNS, kernel="outside").vector.size == 1 + 1 + 3 + 3 + 1
