"""A grant of a trial, as a training loop of another library runs through it.

    loop = Loop.of("validation-logloss", trial, every=1)
    loop.last                                            # the step at which the grant ends
    loop.save(lambda folder: model.save(folder / "model"))
    loop.tell(7, {"validation-logloss": 0.3})            # False: end training

The callbacks for training libraries are thin wrappers around it. An objective passes its trial; a
script that runs as a trial's command reads it from the environment.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsFloat, TypeAlias, TypeVar

from scrimp import script
from scrimp.checks import did_you_mean, is_whole
from scrimp.errors import ReportError, StorageError
from scrimp.executors.live_trial import LiveTrial

State = TypeVar("State")

Metrics = str | Mapping[str, str]
"""The metrics to report: one metric of the library by its name, or a mapping from the study's names
to the library's, such as ``{"val_error": "val_loss"}``."""


@dataclass(frozen=True)
class ScriptTrial:
    """The trial of a script that runs as a command (`scrimp.script`)."""

    @property
    def budget(self) -> float:
        """The step at which the grant ends."""
        return float(os.environ["SCRIMP_BUDGET"])

    @property
    def step(self) -> float:
        """The step of the saved state."""
        return float(os.environ.get("SCRIMP_RESUME_STEP", 0))

    @property
    def resumed(self) -> bool:
        """True if there is a saved state to continue from."""
        return script.resumed()

    @property
    def checkpoint_dir(self) -> Path:
        """The folder of the trial."""
        return script.checkpoint_dir()

    def report(self, value: Mapping[str, SupportsFloat], /, *, step: float | None = None) -> bool:
        """Report metrics; True to continue training."""
        return script.report(step=step, **{name: float(one) for name, one in value.items()})


RunningTrial: TypeAlias = LiveTrial | ScriptTrial


@dataclass
class Loop:
    """One grant of a trial."""

    trial: RunningTrial
    names: Mapping[str, str]
    every: int
    reported: bool = False

    @staticmethod
    def of(metrics: Metrics, trial: RunningTrial | None, every: int = 1) -> "Loop":
        """Return the loop of the objective's trial, or of the script's."""
        if not is_whole(every, 1):
            raise ReportError(f"every is {every!r}; it must be a positive whole number of steps")
        names = {metrics: metrics} if isinstance(metrics, str) else dict(metrics)
        if not names or not all(isinstance(name, str) for pair in names.items() for name in pair):
            raise ReportError(
                f"metrics is {metrics!r}; name a metric, or map the study's names to the library's"
            )
        if trial is None:
            if "SCRIMP_BUDGET" not in os.environ:
                raise ReportError(
                    "this callback is outside a trial: pass it the trial of the objective,"
                    " ScrimpCallback(metric, trial), or run the script as a command of a study"
                    " (scrimp run)"
                )
            trial = ScriptTrial()
        return Loop(trial, names, every)

    @property
    def last(self) -> int:
        """The step at which this grant ends, counted from the start of the trial."""
        return math.ceil(self.trial.budget)

    @property
    def folder(self) -> Path | None:
        """The folder to save to before a report; None in a study that keeps no checkpoints."""
        try:
            return self.trial.checkpoint_dir
        except ReportError:
            return None

    def save(self, write: Callable[[Path], object]) -> None:
        """Call ``write`` with the folder of the trial, unless the study keeps no checkpoints."""
        folder = self.folder
        if folder is not None:
            write(folder)

    def saved(self, name: str) -> Path | None:
        """Return the path of the saved state to continue from; None at the beginning."""
        if not self.trial.resumed:
            return None
        path = self.trial.checkpoint_dir / name
        if not path.exists():
            held = ", ".join(sorted(one.name for one in path.parent.iterdir()))
            raise StorageError(
                f"the trial continues from step {self.trial.step:g}, but its checkpoint has no"
                f" {name} (it holds {held}); let only the callback write there, or use a new study"
            )
        return path

    def loaded(
        self,
        name: str,
        read: Callable[[str], State],
        broken: type[Exception] | tuple[type[Exception], ...],
    ) -> State | None:
        """Return the saved state that the library's ``read`` gives, or None at the beginning;
        ``broken`` are the errors that ``read`` raises for a damaged file."""
        path = self.saved(name)
        if path is None:
            return None
        try:
            return read(str(path))
        except broken as error:
            raise unreadable(path, self.trial.step, error) from error

    def due(self, step: int) -> bool:
        """True if this step is reported: every ``every`` steps, and the last one."""
        return step % self.every == 0 or step >= self.last

    def tell(self, step: float, found: Mapping[str, SupportsFloat]) -> bool:
        """Report what the library measured after ``step``; False to end training."""
        values = {name: _value(theirs, found) for name, theirs in self.names.items()}
        self.reported = True
        at = min(float(step), self.trial.budget)
        return self.trial.report(values, step=at) and not self.ends(step)

    def ends(self, step: float) -> bool:
        """True if the grant is used up; fractions of an epoch are rounded off."""
        return step >= self.trial.budget - 1e-6

    def check_reported(self) -> None:
        """Raise `ReportError` if training ended without a report."""
        if not self.reported:
            raise ReportError(
                f"training ended and {_quoted(self.names.values())} was never measured; give the"
                " library validation data, and let it evaluate at least once per grant"
            )


Evaluated = Mapping[str, Mapping[str, Sequence[float]]]
"""Values by data set and measure, the newest last."""


def last_values(log: Evaluated) -> dict[str, float]:
    """Return the latest value of each measure on each data set, named "data-measure"."""
    return {
        f"{data}-{name}": values[-1]
        for data, named in log.items()
        for name, values in named.items()
    }


def unreadable(path: Path, step: float, error: Exception) -> StorageError:
    """Return the error for a saved state at ``path`` that the library cannot load."""
    return StorageError(
        f"the checkpoint of step {step:g} at {path} cannot be read:"
        f" {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''};"
        " remove that folder, and `scrimp retry` trains from the state before it"
    )


def _value(name: str, found: Mapping[str, SupportsFloat]) -> float:
    if name not in found:
        known = f"it measured {_quoted(found)}" if found else "it measured nothing"
        hint = did_you_mean(name, found, "; give it validation data and name one of its metrics")
        raise ReportError(f"the library reported no {name!r}: {known}{hint}")
    return float(found[name])


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
