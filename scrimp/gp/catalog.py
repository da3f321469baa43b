"""Kernels by name, so that one registered from outside is selectable in every method that has a GP.

register_kernel("matern12-ard", lambda columns: Scaled(Matern12(columns)))
kernel_by_name("matern12-ard", columns)
"""

from collections.abc import Callable, Sequence

from scrimp.catalogs.catalog import Catalog
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Kernel, Scaled
from scrimp.gp.stationary import RBF, Matern32, Matern52

__all__ = ["KernelFactory", "kernel_by_name", "kernel_names", "register_kernel"]

KernelFactory = Callable[[Sequence[Column]], Kernel]

_FACTORIES: Catalog[KernelFactory] = Catalog(
    "kernel",
    {
        "matern52-ard": lambda columns: Scaled(Matern52(columns)),
        "matern52-noard": lambda columns: Scaled(Matern52(columns, ard=False)),
        "matern32-ard": lambda columns: Scaled(Matern32(columns)),
        "matern32-noard": lambda columns: Scaled(Matern32(columns, ard=False)),
        "rbf-ard": lambda columns: Scaled(RBF(columns)),
        "rbf-noard": lambda columns: Scaled(RBF(columns, ard=False)),
    },
)


def register_kernel(name: str, factory: KernelFactory) -> None:
    """Make a kernel selectable by name; a name is given once.

    The factory is handed the columns of the configuration; methods add budget, task or warping
    around what it returns.
    """
    _FACTORIES.add(name, factory)


def kernel_names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_FACTORIES))


def kernel_by_name(name: str, columns: Sequence[Column]) -> Kernel:
    """The kernel of that name over these columns."""
    return _FACTORIES[name](columns)
