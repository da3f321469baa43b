"""The tables of a study file that say what is optimized where there are several metrics."""

from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.study_file import read_study_file


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('metrics = {error = "down", speed = "maximize"}', "metrics: direction of metric 'error'"),
        ("goals = {sped = 1.0}", "goals: goals names 'sped'"),
        ("reference = {error = 1.0}", "reference: reference leaves out speed"),
        ("weights = {error = -1.0, speed = 1.0}", "weights: weight of 'error'"),
        ('metric = "error"', "metrics: metric='error'"),
    ],
)
def test_tables_of_several_metrics_are_blamed_by_name(
    tmp_path: Path, line: str, words: str
) -> None:
    metrics = 'metrics = {error = "minimize", speed = "maximize"}'
    top = line if line.startswith("metrics") else f"{metrics}\n{line}"
    command = 'command = "{python} t.py {x}"'
    rest = 'space.x = {type = "float", low = 0, high = 1}\nrun.n_trials = 3\n'
    text = f'name = "s"\n{command}\n{top}\n{rest}'
    (tmp_path / "t.py").touch()
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(StudyError, match=words):
        read_study_file(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_text(text.replace(top, metrics))
    assert read_study_file(tmp_path / "s.toml").question["metrics"]["speed"] == "maximize"
