"""The exceptions of scrimp.

    ScrimpError
    ├── SpaceError           an invalid search space
    ├── ConfigError          a configuration that is not in its space
    ├── ReportError          a value, step or metric that is not valid for its trial
    ├── StudyError           no such study, one that exists already, one that changed
    ├── MethodError          unknown method, unknown or invalid setting
    ├── PluginError          a plugin that is missing, fails on import, or is neither installed
                             nor named
    ├── ObjectiveError       an objective that cannot be called or sent to workers
    │   └── BrokenObjective  one that fails every trial from the start
    ├── StorageError         a store that cannot be reached, read or written
    │   ├── Unreachable      a server that does not answer now
    │   ├── CheckpointError  a disk that cannot store checkpoints: the run ends, no trial fails
    │   └── Conflict         another process took this numbered decision: read the log and decide again
    │       └── TurnLost     the log that was read may be void too: read it again from the start
    ├── OutputError          an output that no one reads any more: the run ends, no trial fails
    ├── NumericalError       a matrix that no amount of jitter makes positive definite
    └── TableError           a benchmark or score file that does not follow its format

Each message has the value, the rule it breaks and the remedy. The input errors are ValueErrors too,
so that code without knowledge of scrimp can catch them.
"""


class ScrimpError(Exception):
    """The base of all exceptions of scrimp."""


class SpaceError(ScrimpError, ValueError):
    """An invalid search space: bad bounds, choices or conditions."""


class ConfigError(ScrimpError, ValueError):
    """A configuration that is not in its space."""


class ReportError(ScrimpError, ValueError):
    """A value, step or metric that is not valid for its trial."""


class StudyError(ScrimpError, ValueError):
    """No such study, one that exists already, or one that changed in a way that is not allowed."""


class MethodError(ScrimpError, ValueError):
    """An unknown method, or a setting the method does not have."""


class PluginError(ScrimpError, ValueError):
    """A plugin that is missing, fails on import, or is neither installed nor named."""


class ObjectiveError(ScrimpError, ValueError):
    """An objective that cannot be called or cannot be sent to worker processes."""


class BrokenObjective(ObjectiveError):
    """An objective that fails in every trial from the start; raised from its own exception if that is
    known.

    ``words`` describe the failure; ``details`` are the traceback or the last lines of output of one
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
    """A URL that is not the address of a storage."""


class Unreachable(StorageError):
    """A server that does not answer now."""


class CheckpointError(StorageError):
    """A full, read-only or broken disk, or a bucket that denies access, for checkpoints: no trial
    fails because of it."""


class OutputError(ScrimpError):
    """A terminal that was closed, or a pipe that no one reads any more: no trial fails because its
    objective could not print."""


class Conflict(StorageError):
    """Another process took this numbered decision: read the log and decide again."""


class TurnLost(Conflict):
    """The connection was lost during a turn: the log that was read may have been undone."""


class NumericalError(ScrimpError, ArithmeticError):
    """Numbers that cannot be used, such as a matrix that is not positive definite."""


class TableError(ScrimpError, ValueError):
    """A benchmark table or score file that does not follow its format."""
