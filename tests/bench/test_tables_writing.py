"""Tables written and read back."""

import numpy as np
import pytest

from scrimp.bench.tables import Table, config_rows, read_table, write_table
from scrimp.errors import ConfigError, TableError
from scrimp.space.parameter import Categorical, Float, Ordinal
from scrimp.space.space import Space

SPACE = Space(
    kernel=Categorical(["linear", "rbf"]),
    gamma=Float(0.1, 10.0, log=True, when={"kernel": "rbf"}),
    layers=Ordinal([1, 2, 4]),
)
CONFIGS = [{"kernel": "linear", "layers": 4}, {"kernel": "rbf", "gamma": 0.5, "layers": 1}]


def test_configurations_come_back(tmp_path):
    value = np.array([[[3.0, 2.0], [1.0, np.nan]]])
    rows = config_rows(SPACE, CONFIGS)
    np.testing.assert_array_equal(rows, [[0, np.nan, 2], [1, 0.5, 0]])
    fixed = "mine", "loss", SPACE, ("t",), rows, value, "step", (10, 20)
    elapsed = np.array([[[1.0, 2.0], [1.0, 3.0]]])
    write_table(tmp_path / "mine.npz", Table(*fixed, elapsed, notes={"source": "here"}))
    table = read_table(tmp_path / "mine.npz")
    assert table.space == SPACE
    task = table.task("t")
    assert list(task.pool.configs) == CONFIGS
    np.testing.assert_array_equal(task.value, value[0])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]


def test_final_values_need_no_levels(tmp_path):
    table = write_table(
        tmp_path / "mine.npz",
        Table("mine", "error", SPACE, ("t",), config_rows(SPACE, CONFIGS), np.ones((1, 2, 1))),
    )
    assert table.unit is None and table.value.shape == (1, 2, 1)


def test_a_wrong_draft_leaves_nothing(tmp_path):
    wrong = Table(
        "mine", "error", SPACE, ("t", "u"), config_rows(SPACE, CONFIGS), np.ones((1, 2, 1))
    )
    with pytest.raises(TableError, match="value has shape"):
        write_table(tmp_path / "mine.npz", wrong)
    assert not list(tmp_path.iterdir())
    with pytest.raises(TableError, match=r"must end in \.npz"):
        write_table(tmp_path / "mine.csv", wrong)
    with pytest.raises(ConfigError, match="'kernel' is 'cubic'"):
        config_rows(SPACE, [{"kernel": "cubic", "layers": 1}])
