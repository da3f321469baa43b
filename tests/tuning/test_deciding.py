"""Whoever builds the policy of a study has its plugins first, or is told what is missing."""

from pathlib import Path

import pytest

import scrimp
from scrimp.errors import PluginError
from scrimp.gp import catalog
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import Matern32
from scrimp.history.events import StudyChanged
from scrimp.tuning.deciding import policy_of

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_what_a_study_is_made_of_is_recorded_without_being_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())
    catalog.register_kernel("of-this-test", lambda columns: Scaled(Matern32(columns)))
    study = scrimp.create_study("s", SPACE, method="gp:kernel=of-this-test", storage="memory://")
    assert study.history.plugins == (__name__,)
    assert policy_of(study.history) is not None
    plain = scrimp.create_study("t", SPACE, method="gp", storage="memory://")
    assert plain.history.plugins == ()


def test_a_plugin_that_is_missing_ends_decisions_and_not_reading() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)
    study.tell(study.ask(), 0.5)
    study._ledger.append([StudyChanged(plugins=("no_such_module",))])
    with pytest.raises(PluginError, match="study 's' needs the plugin 'no_such_module'"):
        policy_of(study.history)
    assert study.best_value == 0.5 and len(study.trials) == 1


def test_naming_more_plugins_later_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "toy_deciding.py").write_text("")
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("s", SPACE, method="random", storage=url)
    again = scrimp.create_study(
        "s", SPACE, method="random", storage=url, load_if_exists=True, plugins=["toy_deciding"]
    )
    assert again.history.plugins == ("toy_deciding",)
