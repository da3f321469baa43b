"""Install the compared libraries, each in a virtual environment of its own under `.venvs/`.

    python benchmarks/run.py environments            # those that `compare_functions` needs
    python benchmarks/run.py environments neps       # some by name

Separate environments keep the pinned requirements of the libraries apart. torch is installed first
and pinned: that exact release has a small CPU build, while looser requirements pull in gigabytes of
GPU libraries. A complete environment contains a stamp with the requirements it was built from, and
is not built again.
"""

import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

RUN = Path(__file__).resolve().with_name("run.py")
ROOT = RUN.parents[1] / ".venvs"
TORCH = "torch==2.13.0"

# Each inner tuple is one `pip install`, in order.
REQUIREMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "optuna": ((TORCH,), ("optuna>=5,<6", "scipy", "cmaes", "scikit-learn")),
    "botorch": ((TORCH,), ("botorch", "scikit-learn")),
    "syne-tune": (("syne-tune[gpsearchers]==0.13.0", "numpy<1.27", "scipy<1.14"),),
    "smac": (("smac>=2.4", "scikit-learn"),),
    # With looser requirements pip tries old releases of GPy, which do not build, one after another.
    "hebo": ((TORCH,), ("HEBO==0.3.6", "GPy==1.13.2", "numpy==1.24.4", "scikit-learn", TORCH)),
    "training": ((TORCH,), ("scikit-learn", "--editable", str(ROOT.parent))),
    "neps": ((TORCH,), ("neural-pipeline-search", TORCH)),
}
COMPARED = ("optuna", "botorch", "syne-tune")


def python(name: str) -> Path:
    """Return the interpreter of a peer's environment."""
    return ROOT / name / "bin" / "python"


def script_command(interpreter: Path | str, script: str, *arguments: str) -> list[str]:
    """Return the command that runs a benchmark script with an interpreter."""
    return [str(interpreter), str(RUN), script, *arguments]


def peer_command(peers: Mapping[str, tuple[str, str]], method: str, seed: int) -> list[str]:
    """Return the command that runs a method of a peer.

    ``peers`` maps the beginning of a method's name to an environment and a script.
    """
    name, script = next(parts for prefix, parts in peers.items() if method.startswith(prefix))
    return script_command(python(name), script, "--method", method, "--seed", str(seed))


def stamp_text(name: str) -> str:
    """Return the requirements of an environment; it is built again when they change."""
    return "\n".join(" ".join(step) for step in REQUIREMENTS[name]) + "\n"


def is_complete(name: str) -> bool:
    """Check that the environment exists and was built from the current requirements."""
    stamp = ROOT / name / "installed.txt"
    return stamp.exists() and stamp.read_text() == stamp_text(name)


def create(name: str) -> bool:
    """Build one environment.

    Return False, after printing the last lines of the installer, when that fails.
    """
    if is_complete(name):
        return True
    venv.create(ROOT / name, with_pip=True, clear=True)
    for step in REQUIREMENTS[name]:
        command = [str(python(name)), "-m", "pip", "install", "--quiet", *step]
        print(f"{name}: pip install {' '.join(step)}", flush=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(
                f"{name}: could not be installed and is left out\n"
                + "\n".join(done.stderr.splitlines()[-8:]),
                flush=True,
            )
            return False
    (ROOT / name / "installed.txt").write_text(stamp_text(name))
    return True


def main(names: list[str]) -> int:
    """Build the named environments, or those that `compare_functions` needs.

    Return 1 when one could not be built and 2 when a name is unknown.
    """
    unknown = [name for name in names if name not in REQUIREMENTS]
    if unknown:
        print(f"unknown peer {unknown[0]!r}; known: {', '.join(REQUIREMENTS)}")
        return 2
    built = [create(name) for name in names or COMPARED]
    return 0 if all(built) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
