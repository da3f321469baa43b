"""One virtual environment per peer under `.venvs/`, so that their pins cannot meet.

    python benchmarks/environments.py            # the peers that `compare.py` runs
    python benchmarks/environments.py neps       # some by name

torch goes in first and pinned: that exact release has a small CPU build, anything looser pulls
gigabytes of GPU libraries. An environment that is complete carries a stamp with the requirements it
was built from and is left alone.
"""

import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / ".venvs"
TORCH = "torch==2.13.0"

# Each inner tuple is one `pip install`, in order.
REQUIREMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "optuna": ((TORCH,), ("optuna>=5,<6", "scipy")),
    "botorch": ((TORCH,), ("botorch",)),
    "syne-tune": (("syne-tune[gpsearchers]==0.13.0", "numpy<1.27", "scipy<1.14"),),
    "smac": (("smac>=2.4",),),
    "training": ((TORCH,), ("scikit-learn", "--editable", str(ROOT.parent))),
    "neps": ((TORCH,), ("neural-pipeline-search", TORCH)),
}
COMPARED = ("optuna", "botorch", "syne-tune")


def python(name: str) -> Path:
    """The interpreter of a peer's environment."""
    return ROOT / name / "bin" / "python"


def peer_command(peers: Mapping[str, tuple[str, str]], method: str, seed: int) -> list[str]:
    """What runs a method of a peer; ``peers`` gives environment and script by how the method's name
    begins."""
    name, script = next(parts for prefix, parts in peers.items() if method.startswith(prefix))
    where = Path(__file__).resolve().parent / script
    return [str(python(name)), str(where), "--method", method, "--seed", str(seed)]


def stamp_text(name: str) -> str:
    """What the environment is built from: when this changes, it is built again."""
    return "\n".join(" ".join(step) for step in REQUIREMENTS[name]) + "\n"


def is_complete(name: str) -> bool:
    """Whether the environment exists and was built from today's requirements."""
    stamp = ROOT / name / "installed.txt"
    return stamp.exists() and stamp.read_text() == stamp_text(name)


def create(name: str) -> bool:
    """Build one environment; False, with the installer's last lines, when its requirements cannot
    be met here."""
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
    """Build the named environments, or those the comparison needs; 1 when one is missing, 2 for an
    unknown name."""
    unknown = [name for name in names if name not in REQUIREMENTS]
    if unknown:
        print(f"unknown peer {unknown[0]!r}; known: {', '.join(REQUIREMENTS)}")
        return 2
    built = [create(name) for name in names or COMPARED]
    return 0 if all(built) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
