"""What scrimp imports when a study names something of this package: each part gets its name
here."""

from parabola.acquisitions import Optimist, PerSecond
from parabola.kernels import RationalQuadratic
from parabola.schedulers import KeepUp
from parabola.surrogates import Parabola
from scrimp.extend import Scaled, register

register("acquisition", "optimist", Optimist)
register("acquisition", "per-second", PerSecond)
register("kernel", "rational", lambda columns: Scaled(RationalQuadratic(columns)))
register("surrogate", "parabola", Parabola)
register("method", "keep-up", KeepUp, needs_budget=True)
