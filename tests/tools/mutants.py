"""Check that the tests notice hand-made defects: ``make mutants``.

Every entry of ``mutants.toml`` replaces one text of one file of the package, in a temporary copy of
the repository, and runs the tests that should fail then. A mutant is *killed* if one of them fails
or takes too long, and *survives* if all pass. An entry whose text is not found, or found twice, is
stale: it is an error, like tests that fail without any mutant.

    python -m tests.tools.mutants                   # all of them
    python -m tests.tools.mutants --only storage/   # those of some files
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).with_suffix(".toml")
MAX_SECONDS = 600
FAILED = 1
"""The exit status of pytest when a test failed; others say that it could not run them."""


@dataclass(frozen=True)
class Mutant:
    """One defect: ``old`` becomes ``new`` in ``file``, and a test of ``tests`` should fail."""

    group: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied_to(self, text: str) -> str:
        """Return the text of the file with the defect.

        >>> Mutant("own", "a.py", "x < 1", "x > 1", ()).applied_to("if x < 1: y()")
        'if x > 1: y()'
        """
        if text.count(self.old) != 1:
            found = text.count(self.old)
            raise ValueError(
                f"stale mutant of {self.file}: {self.old!r} is there {found} times, not once;"
                f" bring {LISTS.name} up to date"
            )
        return text.replace(self.old, self.new)


def read_mutants(path: Path = LISTS) -> list[Mutant]:
    """Return the mutants of a file, each checked against the package."""
    groups = tomllib.loads(path.read_text(encoding="utf-8"))
    mutants = [
        Mutant(group, each["file"], each["old"], each["new"], tuple(each["tests"]))
        for group, entries in groups.items()
        for each in entries
    ]
    for mutant in mutants:
        mutant.applied_to((ROOT / mutant.file).read_text(encoding="utf-8"))
        for test in mutant.tests:
            if not (ROOT / test.partition("::")[0]).is_file():
                raise ValueError(f"the mutant of {mutant.file} names {test}, which does not exist")
    return mutants


@contextmanager
def copy_of_repository() -> Iterator[Path]:
    """Yield a temporary copy, without environments and history."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "repository"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
        shutil.copytree(ROOT, copy, ignore=ignored)
        yield copy


def run_tests(copy: Path, tests: Sequence[str], seconds: float = MAX_SECONDS) -> tuple[int, str]:
    """Run tests against the package in the copy; return pytest's exit status and last lines."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=line", *tests]
    try:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return FAILED, f"longer than {seconds:g} s"
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-5:])


def is_killed(mutant: Mutant) -> tuple[bool, str]:
    """Try one mutant; return whether a test failed, and the name of that test."""
    with copy_of_repository() as copy:
        path = copy / mutant.file
        path.write_text(mutant.applied_to(path.read_text(encoding="utf-8")), encoding="utf-8")
        status, output = run_tests(copy, mutant.tests)
    if status not in (0, FAILED):
        raise RuntimeError(f"pytest ended with {status} for {mutant.file}: {output}")
    named = [line for line in output.splitlines() if line.startswith("FAILED")]
    return status == FAILED, named[0].split()[1] if named else output


def check_unchanged(mutants: Sequence[Mutant]) -> None:
    """Raise unless every test passes in a copy without a defect."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with copy_of_repository() as copy:
        status, output = run_tests(copy, tests, seconds=MAX_SECONDS * 6)
    if status:
        raise RuntimeError(f"tests fail without any mutant: {output}")


def main(words: Sequence[str] | None = None) -> int:
    """Try the mutants and print each; return 1 if one survives."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="only files whose path contains this text")
    parser.add_argument("--group", default="", help="only this list of mutants.toml")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default 2)")
    chosen = parser.parse_args(words)
    mutants = [
        mutant
        for mutant in read_mutants()
        if chosen.only in mutant.file and chosen.group in ("", mutant.group)
    ]
    check_unchanged(mutants)
    killed: dict[str, list[bool]] = {}
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for mutant, (dead, test) in zip(mutants, pool.map(is_killed, mutants), strict=True):
            killed.setdefault(mutant.group, []).append(dead)
            text = f"killed by {test}" if dead else f"SURVIVED {', '.join(mutant.tests)}"
            print(f"{mutant.file}: {mutant.old!r} -> {mutant.new!r}: {text}", flush=True)
    for group, results in killed.items():
        print(f"{group}: {sum(results)} of {len(results)} killed")
    return int(not all(all(results) for results in killed.values()))


if __name__ == "__main__":
    sys.exit(main())
