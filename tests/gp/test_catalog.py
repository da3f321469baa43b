import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.gp import catalog
from scrimp.gp.catalog import kernel_by_name, kernel_names, register_kernel
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import RBF, Stationary
from scrimp.surrogates.exact_gp import ExactGP

COLUMNS = (Column(), Column(), Column((0.0, 1.0), ordered=False))


@pytest.mark.parametrize(
    "name",
    ["matern52-ard", "matern52-noard", "matern32-ard", "matern32-noard", "rbf-ard", "rbf-noard"],
)
def test_every_built_in_name(name):
    kernel = kernel_by_name(name, COLUMNS)
    assert len(kernel.values) == 1 + (1 if name.endswith("noard") else 3)
    assert name in kernel_names()


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
    assert "outside" in kernel_names()
    assert ExactGP.over(COLUMNS, kernel="outside").vector.size == 1 + 1 + 3 + 3 + 1
