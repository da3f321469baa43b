"""The executor that runs objectives in this process, so that debuggers and print work as usual."""

from scrimp.executors.clock import Clock, wall_clock
from scrimp.executors.executor import Assignment, Deliver, Executor
from scrimp.executors.live_trial import LiveTrial, Objective, run_objective
from scrimp.study_log.events import Event


class InProcess(Executor):
    """An executor with one slot, which runs its trial inside ``wait``."""

    def __init__(
        self,
        objective: Objective,
        metrics: tuple[str, ...],
        cost: str | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self._objective = objective
        self._metrics = metrics
        self._cost = cost
        self._clock = clock
        self._assignment: Assignment | None = None
        self._stopped = False
        self._undelivered: Exception | None = None
        self._cause: tuple[int, BaseException | None] = (-1, None)

    @property
    def slots(self) -> int:
        return 1

    @property
    def busy(self) -> int:
        return 0 if self._assignment is None else 1

    @property
    def clock(self) -> Clock:
        return self._clock

    def start(self, assignment: Assignment) -> None:
        self._assignment, self._stopped, self._undelivered = assignment, False, None

    def stop(self, trial: int) -> None:
        """Make the next report of the objective return False."""
        if self._assignment is not None and self._assignment.trial == trial:
            self._stopped = True

    def wait(self, deliver: Deliver) -> None:
        """Run the assignment to its end, and deliver each report as it is made.

        An error while delivering belongs to the loop and is no failure of the objective.
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
            trial = LiveTrial(self._assignment, self._metrics, self._cost, emit, self._clock)
            last = run_objective(self._objective, trial, self._clock)
            if self._undelivered is not None:
                raise self._undelivered
            self._cause = self._assignment.trial, trial.failure
            deliver(last)
        finally:
            self._assignment = None

    def cause(self, trial: int) -> BaseException | None:
        number, error = self._cause
        return error if number == trial else None

    def close(self) -> None:
        """Do nothing: there is nothing to free."""
