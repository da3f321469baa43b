"""Every exception scrimp raises on purpose, as one tree.

    ScrimpError
    ├── SpaceError           a search space that cannot be
    ├── ConfigError          a configuration that does not fit its space
    ├── ReportError          a value, step or metric that does not fit its trial
    ├── StudyError           no such study, one that exists already, one that changed
    ├── MethodError          unknown method, unknown or impossible setting
    ├── PluginError          a plugin that is missing, fails on import, or that nobody here
                             installed or named
    ├── ObjectiveError       an objective that cannot be called or sent to workers
    │   └── BrokenObjective  one that fails every trial from the start
    ├── StorageError         a store that cannot be reached, read or written
    │   ├── Unreachable      a server that does not answer: later it may
    │   ├── CheckpointError  a disk that does not take checkpoints: the run ends, no trial fails
    │   └── Conflict         somebody else took this numbered decision first: read on and decide again
    │       └── TurnLost     what was read for the decision may be void as well: forget it before reading on
    ├── NumericalError       a matrix that no amount of jitter makes positive definite
    └── TableError           a benchmark or score file that does not follow its format

Each message names the value, the rule it breaks and the remedy. The input errors are ValueErrors
too, so that code which knows nothing of scrimp still catches them.
"""

__all__ = [
    "AddressError",
    "BrokenObjective",
    "CheckpointError",
    "ConfigError",
    "Conflict",
    "MethodError",
    "NumericalError",
    "ObjectiveError",
    "PluginError",
    "ReportError",
    "ScrimpError",
    "SpaceError",
    "StorageError",
    "StudyError",
    "TableError",
    "TurnLost",
    "Unreachable",
]


class ScrimpError(Exception):
    """Whatever scrimp refuses or fails to do."""


class SpaceError(ScrimpError, ValueError):
    """A search space that cannot be: bad bounds, choices or conditions."""


class ConfigError(ScrimpError, ValueError):
    """A configuration that does not fit its space."""


class ReportError(ScrimpError, ValueError):
    """A value, step or metric that does not fit its trial."""


class StudyError(ScrimpError, ValueError):
    """No such study, one that exists already, or one that changed in a way it may not."""


class MethodError(ScrimpError, ValueError):
    """An unknown method, or a setting the method does not have."""


class PluginError(ScrimpError, ValueError):
    """A plugin that is missing, fails on import, or that nobody here has installed or named."""


class ObjectiveError(ScrimpError, ValueError):
    """An objective that cannot be called or cannot be sent to worker processes."""


class BrokenObjective(ObjectiveError):
    """An objective with which every trial fails from the start; raised from its own exception where
    that is known.

    ``words`` say what happened, ``details`` are the traceback or the last lines of output of one
    failure.
    """

    def __init__(self, words: str, details: str = "", remedy: str = "") -> None:
        super().__init__(words, details, remedy)
        self.words, self.details, self.remedy = words, details, remedy

    def __str__(self) -> str:
        details = (
            ""
            if self.__cause__ is not None or "\n" not in self.details.strip()
            else self.details.strip()
        )
        return "\n".join(part for part in (self.words, self.remedy, details) if part)


class StorageError(ScrimpError):
    """A store that cannot be reached, read or written."""


class AddressError(StorageError, ValueError):
    """A URL that names no storage."""


class Unreachable(StorageError):
    """A server that does not answer; later it may."""


class CheckpointError(StorageError):
    """A full, read-only or broken disk, or a bucket that refuses, where checkpoints belong: not the
    fault of any trial."""


class Conflict(StorageError):
    """This numbered decision was taken by somebody else: read on and decide again."""


class TurnLost(Conflict):
    """The connection was lost during a turn: a crashed server may have taken back what was read in
    it."""


class NumericalError(ScrimpError, ArithmeticError):
    """Numbers that no remedy in the code makes usable, such as a matrix that stays indefinite."""


class TableError(ScrimpError, ValueError):
    """A benchmark table or score file that does not follow its format."""
