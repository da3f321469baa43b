"""What the columns of an encoded input are: the vocabulary that kernels, domains and encodings
share.

An encoded configuration is a row of the unit cube. A *continuous* column may take any value in [0,
1]. A *discrete* column may take the listed ``values`` only, and their distance matters (integers,
ordinals). A *categorical* column takes the values i / (k - 1), i < k, and only equality matters:
its squared distance is 0 or 1.
"""

from dataclasses import dataclass

__all__ = ["Column"]


@dataclass(frozen=True)
class Column:
    """One column of the encoded input.

    ``values``: the sorted values it may take, or None when it is continuous. ``ordered``: False for
    a categorical column, whose values are 0, 1/(k-1), ..., 1 (0 alone when k = 1). ``scale``: the
    length-scale to expect along it, where past studies tell; None for what is usual.

    >>> Column().kind, Column((0.0, 0.5, 1.0)).kind, Column((0.0, 1.0), ordered=False).kind
    ('continuous', 'discrete', 'categorical')
    """

    values: tuple[float, ...] | None = None
    ordered: bool = True
    scale: float | None = None

    @property
    def kind(self) -> str:
        """'continuous', 'discrete' or 'categorical'."""
        if self.values is None:
            return "continuous"
        return "discrete" if self.ordered else "categorical"
