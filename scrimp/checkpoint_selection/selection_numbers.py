"""Every tuning number of checkpoint selection.

The line below a number says what it bounds and where the value comes from: *notebook* is
benchmarks/notebook.md, section "Checkpoints"; *convention* is a customary value that was
never compared with others. Priors of the models stand in `task_grid_models`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SelectionNumbers:
    """The numbers of the methods. Users change settings of `create_selection` instead."""

    refit_growth: float = 1.25
    """Hyperparameters are refitted when the cells have grown by this factor. Convention."""

    max_fit_iterations: int = 40
    """Steps of L-BFGS per fit, with twice as many evaluations. Convention."""

    fit_tolerance: float = 1e-5
    """Relative change of the log posterior at which a fit ends. Convention."""

    max_start_deviations: float = 2.0
    """A fit starts at the recorded values, at most this many prior standard deviations from the
    prior's centre. Convention: it keeps an extreme fit from deciding the next one."""

    start_task_share: float = 0.25
    """Share of the tasks in the start design of kg, ei and top-two. Notebook: an eighth was worse."""

    min_start_tasks: int = 3
    """Tasks in that design at least. Convention."""

    golden_ratio: float = 0.618034
    """Step of the golden sequence, which spreads rows evenly for any number of them."""

    log_offset: float = 0.02
    """Share of the last step added before the logarithm, so that step 0 has a place. Convention."""

    max_deviations_behind: float = 5.0
    """Standard deviations behind the best mean from which a checkpoint is not a contender. Convention:
    fewer than one in a million normal draws lie further out."""

    min_contenders: int = 8
    """Contenders at least. Convention."""

    max_screened_covariances: int = 150_000
    """Covariances computed to screen all cells. Convention: a few milliseconds."""

    min_screening_rows: int = 16
    """Checkpoints on which cells are screened at least. Convention."""

    max_paired_rows: int = 6
    """Leading checkpoints whose pairs may open a task. Notebook: 14 were no better."""

    top_two_draws: int = 64
    """Draws in which top-two looks for a second winner before it takes the runner-up. Convention."""

    min_first_cell_variance: float = 0.05
    """Variance of a task's first cell, in model units, once its level is set aside. Convention."""

    min_downdate_variance: float = 1e-4
    """Variance of a pending cell below which repeated corrections would magnify rounding errors."""

    loss_draws: int = 4096
    """Joint draws behind the expected loss and the probability of a recommendation. Convention: a
    standard error of 0.008 for a probability of one half."""

    loss_caution: float = 2.0
    """Factor on the expected loss before it is compared with a stop rule. Convention: small losses
    are stated too small, because chosen cells flatter the model that chose them."""

    check_growth: float = 1.1
    """Growth of the number of cells between two checks of the expected loss. Convention."""

    outlier_ratio: float = 10.0
    """Scores this many times the usual size get a warning, such as 61 among 0.6. Convention."""

    min_scores_to_warn: int = 4
    """Scores of a task before one of them can be called unusual. Convention."""


NUMBERS = SelectionNumbers()
