import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as peer

from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.priors import IDENTITY, Hyperparameter, Uniform
from scrimp.gp.stationary import RBF, Matern32, Matern52, Stationary, length_scale_parameter
from scrimp.testing.kernels import KernelBattery, rows


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
    four, sixteen = length_scale_parameter(4, ard=True), length_scale_parameter(16, ard=True)
    assert sixteen.density.mode == pytest.approx(2.0 * four.density.mode)
    assert four.size == 4 and length_scale_parameter(4, ard=False).size == 1


def test_length_scale_prior_can_be_replaced():
    own = Hyperparameter(
        "bandwidth", Uniform(0.1, 3.0), bounds=(0.1, 3.0), encoding=IDENTITY, size=2
    )
    kernel = Matern52((Column(), Column()), length_scale=own)
    assert kernel.parameters == (own,)
    np.testing.assert_array_equal(kernel.values, [1.55, 1.55])


def test_what_is_expected_along_columns_centres_the_density():
    columns = (Column(scale=0.3), Column(), Column(scale=4.0))
    (parameter,) = Matern52(columns).parameters
    usual = length_scale_parameter(3, ard=True).density
    assert (
        parameter.density.mu == pytest.approx((np.log(0.3), usual.mu, np.log(4.0)))
        and parameter.size == 3
    )
    assert parameter.density.sigma == usual.sigma
    assert Matern52(columns, ard=False).parameters == (length_scale_parameter(3, ard=False),)
    assert Matern52((Column(), Column())).parameters == (length_scale_parameter(2, ard=True),)
