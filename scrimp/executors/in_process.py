"""One slot in this very process: the objective runs where it was called, so a debugger and print
work as usual."""

from scrimp.executors.clock import Clock, wall_clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.run_context import Objective, RunContext, run_objective
from scrimp.history.events import Event
from scrimp.history.reports import Names

__all__ = ["InProcess"]


class InProcess(Executor):
    """Runs one trial at a time, inside ``wait``."""

    def __init__(
        self,
        objective: Objective,
        metric: Names,
        cost: str | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self._objective = objective
        self._metric = metric
        self._cost = cost
        self._clock = clock
        self._assignment: Assignment | None = None
        self._stopped = False
        self._undelivered: Exception | None = None
        self._cause: tuple[int, BaseException | None] = (-1, None)

    @property
    def slots(self) -> int:
        """One."""
        return 1

    @property
    def busy(self) -> int:
        """1 between ``start`` and the end of ``wait``."""
        return 0 if self._assignment is None else 1

    @property
    def clock(self) -> Clock:
        """The machine's clock unless told otherwise."""
        return self._clock

    def start(self, assignment: Assignment) -> None:
        """Keep the assignment for ``wait``."""
        self._assignment, self._stopped, self._undelivered = assignment, False, None

    def stop(self, trial: int) -> None:
        """Make the objective's report say that it ends here."""
        if self._assignment is not None and self._assignment.trial == trial:
            self._stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Run the assignment to its end, delivering each report as it is made.

        A report that could not be delivered is the loop's trouble, not a failure of the objective
        that made it.
        """
        if self._assignment is None:
            return

        def emit(events: list[Event]) -> bool:
            try:
                deliver(events)
            except Exception as error:
                self._undelivered = error
                raise
            return not self._stopped

        try:
            context = RunContext(self._assignment, self._metric, self._cost, emit, self._clock)
            last = run_objective(self._objective, context, self._clock)
            if self._undelivered is not None:
                raise self._undelivered
            self._cause = self._assignment.trial, context.failure
            deliver(last)
        finally:
            self._assignment = None

    def cause(self, trial: int) -> BaseException | None:
        """What the newest trial raised."""
        number, error = self._cause
        return error if number == trial else None

    def close(self) -> None:
        """Nothing to free."""
