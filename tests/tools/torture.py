"""A torture test: workers, tuners and the database server are killed at random, and the log must
still be right.

    # SQLite, a journal, then PostgreSQL where a server is installed; from the repository root
    python -m tests.tools.torture --kills 200
    # through `scrimp serve` before PostgreSQL: clients, the server and the database are killed
    python -m tests.tools.torture --kills 500 --served

Four processes work on one multi-fidelity study with checkpoints: three plain workers and a tuner
with two worker processes. Each strike kills one of them (``kill -9``), asks one to end (SIGTERM),
suspends one for longer than its lease, sets the clock by two hours, or crashes the server;
processes that end are replaced. Where a disk can be made (`cut_disk`), database and checkpoints lie
on it, and strikes also fill it or cut its power: a copy of the disk at that moment must hold the
checkpoint of every report that was acknowledged before. Then the study gets its total and is
finished without strikes, and `defects` checks log and checkpoints.

The objective writes down each report after it was acknowledged, and checks that a checkpoint it is
given is the committed one.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from scrimp.executors import keeper
from scrimp.executors.clock import wall_clock
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study.studies import create_study, load_study
from scrimp.study.study import Study
from scrimp.study.workers import described
from scrimp.study_log.events import (
    StudyChanged,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget
from tests.tools.cut_disk import CutDisk, can_cut
from tests.tools.postgres_server import PrivateServer, available
from tests.tools.served import WebServer
from tests.tools.set_clock import environment, set_clock
from tests.tools.torture_checks import (
    Cut,
    acknowledged_reports,
    after_a_cut,
    defects,
    study_folder,
    wrong_checkpoints,
)

OBJECTIVE = """
import json, os, time

def objective(trial):
    state = trial.checkpoint_dir / "state.json"
    done = json.loads(state.read_text())["done"] if trial.resumed else []
    for step in trial.steps():
        assert done == list(range(1, step)), f"at step {step} the checkpoint holds {done}"
        time.sleep(0.02)
        done.append(step)
        state.write_text(json.dumps({"attempt": trial.attempt, "done": done}))
        value = trial.params["x"] / step
        trial.report(value)
        line = json.dumps([trial.id, trial.attempt, step, value]) + "\\n"
        with open(os.environ["ACKNOWLEDGED"], "a") as file:
            file.write(line)
"""


LEASE = 2.0
TRIALS_AFTER_THE_ATTACK = 12


@dataclass(frozen=True)
class Fire:
    """The number of ``kills`` on a study at ``url``, besides requests to end and suspensions, and
    what else may be attacked.

    ``server`` and ``web``, a server of studies before it, may be killed, ``disk`` may be filled and
    its power cut, where there is one; with ``clock`` clocks may be set.
    """

    url: str
    kills: int
    seed: int = 0
    server: PrivateServer | None = None
    pause: float = 0.6
    disk: CutDisk | None = None
    clock: bool = False
    web: WebServer | None = None


class _Company:
    """The processes that work on the study."""

    def __init__(self, fire: Fire, folder: Path) -> None:
        self._folder = folder
        self._command = [
            sys.executable,
            "-W",
            "error",
            "-c",
            "from scrimp.cli.main import main; main()",
            "worker",
            "fire",
        ]
        self._command += ["--storage", fire.url, f"--lease={LEASE}"]
        self._environment = {
            **os.environ,
            "ACKNOWLEDGED": str(folder / "acknowledged"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._environment |= environment(folder) if fire.clock else {}
        if fire.web is not None:
            self._environment["SCRIMP_TOKEN"] = fire.web.tokens.make("work", "fire")[0]
        self._environment["SCRIMP_CHECKPOINTS"] = str(checkpoints_of(fire, folder))
        self.processes = [self._launch(slot) for slot in range(4)]

    def _launch(self, slot: int) -> "subprocess.Popen[bytes]":
        with open(self._folder / "errors", "ab") as errors:
            command = [*self._command, "--workers=2"] if slot == 0 else self._command
            return subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stderr=errors,
                start_new_session=True,
            )

    def strike(self, slot: int, number: int) -> None:
        """Send a signal to a process, and replace it when it ends."""
        process = self.processes[slot]
        process.send_signal(number)
        process.wait(timeout=60)
        self.processes[slot] = self._launch(slot)

    def revive(self) -> None:
        """Replace processes that have ended by themselves."""
        for slot, process in enumerate(self.processes):
            if process.poll() is not None:
                self.processes[slot] = self._launch(slot)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Suspend all processes within the block."""
        mine = [process.pid for process in self.processes]
        everyone = [*mine, *(pid for each in mine for pid in keeper.descendants(each))]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in everyone:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                yield

    def finish(self) -> list[int]:
        """Wait until all end by themselves; return their exit codes. A process that started while
        the server was down is started once more."""
        for slot, process in enumerate(self.processes):
            if process.wait(timeout=300) == 1:
                self.processes[slot] = self._launch(slot)
        return [process.wait(timeout=300) for process in self.processes]

    def close(self) -> None:
        """Kill all processes."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@contextlib.contextmanager
def _company(fire: Fire, folder: Path) -> Iterator[_Company]:
    company = _Company(fire, folder)
    try:
        yield company
    finally:
        company.close()


def torture(
    fire: Fire, folder: Path, struck: Counter[str] | None = None
) -> tuple[History, list[str]]:
    """Attack a study; return its history at the end, and its defects. ``struck`` counts strikes
    other than kills."""
    (folder / "under_fire.py").write_text(OBJECTIVE)
    space = Space({"x": Float(0, 1)})
    study = create_study(
        "fire", space, budget=Budget("epoch", 1, 9), method="asha", storage=fire.url, seed=fire.seed
    )
    endless = StudyChanged(
        totals=Totals(n_trials=10**9),
        objective=described("under_fire:objective"),
        time=wall_clock(),
    )
    study._ledger.append([endless])
    wrong: list[str] = []
    with _company(fire, folder) as company:
        for left in _attack(company, fire, folder, Counter() if struck is None else struck):
            wrong += after_a_cut(study.history, left)
        total = _settle(study)
        codes = company.finish()
    history = load_study("fire", storage=fire.url).history
    found = wrong + defects(history, acknowledged_reports(folder / "acknowledged"), total)
    found += wrong_checkpoints(history, study_folder(checkpoints_of(fire, folder), history), {})
    errors = (folder / "errors").read_text(errors="replace").splitlines()
    said = "\n".join(line for line in errors if not line.startswith("best value"))
    found += [f"a worker ended with code {code}: {said[-2000:]}" for code in codes if code]
    return history, found


def _settle(study: Study) -> int:
    """Give the study a total above the trials that were added or are being decided; return it."""
    while True:
        total = len(study.history.trials) + TRIALS_AFTER_THE_ATTACK
        seen = study._ledger.append(
            [StudyChanged(totals=Totals(n_trials=total), time=wall_clock())]
        )
        if len(seen.trials) + 4 <= total:
            return total


def _attack(company: _Company, fire: Fire, folder: Path, struck: Counter[str]) -> Iterator[Cut]:
    """Strike until the kills are done; yield what each power cut left. ``struck`` counts the other
    strikes."""
    chance = np.random.default_rng(fire.seed)
    kills = 0
    while kills < fire.kills:
        time.sleep(chance.uniform(0.2, 1.8) * fire.pause)
        slot, kind = int(chance.integers(4)), chance.random()
        if kind < 0.1:
            company.strike(slot, signal.SIGTERM)
        elif kind < 0.18:
            struck["zombies"] += 1
            company.processes[slot].send_signal(signal.SIGSTOP)
            time.sleep(LEASE + 1)
            company.processes[slot].send_signal(signal.SIGCONT)
        elif kind < 0.23 and fire.clock:
            struck["set clocks"] += 1
            set_clock(folder, float(chance.choice([-7200.0, 0.0, 7200.0])))
        elif kind < 0.27 and fire.disk is not None:
            struck["full disks"] += 1
            with fire.disk.full():
                time.sleep(1.0)
            time.sleep(0.5)
            company.revive()
        elif kind < 0.42 and fire.disk is not None:
            struck["power cuts"] += 1
            with company.held():
                known = acknowledged_reports(folder / "acknowledged")
                cut = contextlib.ExitStack()
                place = cut.enter_context(fire.disk.cut())
            with cut:
                yield Cut(place / "checkpoints", known)
        else:
            kills += 1
            if kind > 0.9 and fire.web is not None:
                struck["killed web servers"] += 1
                fire.web.kill()
                time.sleep(chance.uniform(0, 0.5))
                fire.web.start()
            elif kind > 0.8 and fire.server is not None:
                struck["killed databases"] += 1
                fire.server.stop("immediate")
                time.sleep(chance.uniform(0, 0.5))
                fire.server.start()
            else:
                company.strike(slot, signal.SIGKILL)


def checkpoints_of(fire: Fire, folder: Path) -> Path:
    """Return the folder of all checkpoints."""
    return (folder if fire.disk is None else fire.disk.root) / "checkpoints"


def _show(name: str, fire: Fire, served: bool = False) -> bool:
    began, struck = wall_clock(), Counter[str]()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scrimp-fire-")))
        disk = stack.enter_context(CutDisk(folder)) if can_cut() else None
        url = fire.url.replace("{folder}", str(folder if disk is None else disk.root))
        web = stack.enter_context(WebServer(url, folder)) if served else None
        fire = replace(fire, url=url if web is None else web.url, disk=disk, clock=True, web=web)
        history, found = torture(fire, folder, struck)
    others = "".join(f", {count} {kind}" for kind, count in sorted(struck.items()))
    taken_over = sum(trial.attempt > 1 for trial in history.trials)
    print(
        f"{name}: {fire.kills} kills{others} in {wall_clock() - began:.0f} s, {len(history.trials)}"
        f" trials, {history.spent:g} reports, {taken_over} trials with more than one attempt,"
        f" {len(found)} defects"
    )
    for defect in found:
        print(f"  {defect}")
    return not found


def main() -> None:
    """Attack SQLite, a journal, then PostgreSQL; exit code 1 when log or checkpoints of one are
    wrong."""
    parser = argparse.ArgumentParser(
        description="Kill workers, tuners and the server of a study at random."
    )
    parser.add_argument(
        "--kills", type=int, default=200, help="kills in all, a third of them on each storage"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--served", action="store_true", help="only through `scrimp serve`, all kills there"
    )
    options = parser.parse_args()
    third = -(-options.kills // 3)
    if not can_cut():
        print("no disks are filled or cut: that needs root, loop devices and mkfs.ext4")
    if options.served:
        with PrivateServer() as server:
            fire = Fire(server.url("fire"), options.kills, options.seed, server)
            sys.exit(0 if _show("a server before PostgreSQL", fire, served=True) else 1)
    good = _show("SQLite", Fire("sqlite:///{folder}/fire.db", third, options.seed))
    good &= _show("journal", Fire("journal:///{folder}/fire", third, options.seed))
    if available():
        with PrivateServer() as server:
            good &= _show("PostgreSQL", Fire(server.url("fire"), third, options.seed, server))
    else:
        print("PostgreSQL: no server is installed here (initdb, pg_ctl)")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
