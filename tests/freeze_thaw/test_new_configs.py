"""New configurations, drawn to compete with paused trials."""

import numpy as np

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.new_configs import draw_new_configs
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space

MIXED = Space(
    lr=Float(1e-4, 1e-1, log=True),
    layers=Int(1, 9),
    kind=Categorical(["a", "b"]),
    m=Float(0, 1, when={"kind": "b"}),
)


def near(goal: np.ndarray):  # type: ignore[no-untyped-def]
    """Losses that fall towards ``goal`` at the start, and towards its mirror image at the end."""
    return lambda x: np.stack([((x - goal) ** 2).sum(axis=1), ((x - 1.0 + goal) ** 2).sum(axis=1)])


def test_a_mixed_space_gives_legal_new_rows_some_of_them_near_the_best() -> None:
    encoding = Encoding(MIXED)
    known = encoding.encode(MIXED.sample(20, np.random.default_rng(0)))
    best = known[:1]
    drawn = draw_new_configs(encoding, known, best, near(best[0]), (7, 3))
    again = draw_new_configs(encoding, known, best, near(best[0]), (7, 3))
    np.testing.assert_array_equal(drawn.x, again.x)
    most = NUMBERS.new_configs_drawn + 2 * NUMBERS.new_configs_promising
    assert NUMBERS.new_configs_drawn <= len(drawn.x) <= most and drawn.rows is None
    for place in range(0, len(drawn.x), 17):
        config = drawn.config(place)
        assert MIXED.validate(config) == config
        np.testing.assert_allclose(encoding.encode([config])[0], drawn.x[place], atol=1e-9)
    distances = np.abs(drawn.x[:, None] - known).max(axis=2).min(axis=1)
    assert distances.min() > 1e-6 and distances.min() < 0.1
    assert not np.array_equal(
        draw_new_configs(encoding, known, best, near(best[0]), (7, 4)).x, drawn.x
    )


def test_a_list_gives_its_own_unknown_members_and_the_promising_ones() -> None:
    space = Pool(MIXED, MIXED.sample(900, np.random.default_rng(1)))
    encoding = Encoding(space)
    known = encoding.encode(space.configs[:10])
    goal = encoding.encode([space.configs[500]])[0]
    drawn = draw_new_configs(encoding, known, known[:1], near(goal), (0, 0))
    assert drawn.rows is not None and len(set(drawn.rows.tolist())) == len(drawn.rows)
    assert not set(drawn.rows.tolist()) & set(range(10)) and 500 in drawn.rows
    assert drawn.config(4) == space.configs[drawn.rows[4]]


def test_a_list_that_is_used_up_gives_nothing() -> None:
    space = Pool(MIXED, MIXED.sample(5, np.random.default_rng(1)))
    known = Encoding(space).encode(space.configs)
    assert len(draw_new_configs(Encoding(space), known, known, near(known[0]), (0, 0)).x) == 0
