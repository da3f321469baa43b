"""The package of examples/extension, installed into a fresh environment, is there for every command
without being named."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import scrimp
from scrimp.errors import PluginError
from scrimp.study.decisions import policy_of

ROOT = Path(__file__).resolve().parents[1]

STUDY = """
name = "bowl"
objective = "train:objective"
method = "gp:kernel=rational,acquisition=optimist,initial=3"
storage = "{url}"
seed = 0
[space]
x = {{type = "float", low = -1, high = 1}}
[run]
n_trials = 6
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has what this one has, and the package; its folder holds a study file."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "env", symlinks=True)
    python = folder / "env" / "bin" / "python"
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    here = dict.fromkeys([str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (site / "of_the_tests.pth").write_text("\n".join(here))
    source = shutil.copytree(
        ROOT / "examples" / "extension", folder / "extension"
    )  # a build leaves files in its source
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        *offline,
        "--target",
        str(site),
        str(source),
    ]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"needs setuptools, as in the extra dev: {done.stderr}"
    (folder / "train.py").write_text(
        "def objective(trial):\n    return (trial.params['x'] - 0.3) ** 2\n"
    )
    (folder / "study.toml").write_text(STUDY.format(url=f"sqlite:///{folder}/s.db"))
    return folder


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = [
        str(folder / "env" / "bin" / "python"),
        "-c",
        "from scrimp.cli.main import main; main()",
        *words,
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("SCRIMP_PLUGINS", "PYTHONPATH")
    }
    return subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_an_installed_package_is_found_by_run_replay_and_plot(fresh: Path) -> None:
    ran = command(fresh, "run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    url = f"sqlite:///{fresh}/s.db"
    replayed = command(fresh, "replay", "bowl", "--storage", url, "--json")
    assert replayed.returncode == 0 and json.loads(replayed.stdout)["same"] == 6, replayed.stderr
    drawn = command(fresh, "plot", "bowl", "surrogate", "--storage", url, "--out", "surrogate.json")
    assert drawn.returncode == 0 and (fresh / "surrogate.json").exists(), drawn.stderr
    # Here, where it is not installed, the study can be read, and the error says what is missing.
    history = scrimp.load_study("bowl", storage=url).history
    assert history.plugins == ("parabola",) and len(history.trials) == 6
    with pytest.raises(
        PluginError, match="needs the plugin 'parabola', which no installed package lists"
    ):
        policy_of(history)


def test_the_page_shows_the_package_as_it_is() -> None:
    page, package = (ROOT / "docs" / "extend.md").read_text(), ROOT / "examples" / "extension"
    for path in [package / "pyproject.toml", *sorted(package.rglob("*.py"))]:
        assert path.read_text().strip() in page, f"docs/extend.md shows another {path.name}"


def test_so_do_the_processes_of_a_comparison(fresh: Path) -> None:
    words = [
        "--methods",
        "gp:surrogate=parabola,initial=2",
        "--functions",
        "branin",
        "--trials",
        "3",
        "--seeds",
        "1",
    ]
    done = command(fresh, "bench", "functions", *words, "--json")
    assert done.returncode == 0 and len(json.loads(done.stdout)["regret"]) > 0, done.stderr


def test_its_own_tests_pass(fresh: Path) -> None:
    """With the batteries of scrimp.testing, as its author runs them."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "extension/tests"]
    done = subprocess.run(
        [str(fresh / "env" / "bin" / "python"), *words],
        cwd=fresh,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:]
