"""Every tuning number of freeze-thaw, in the order of docs/freeze-thaw.md.

The text below a number says what it bounds and where the value comes from:

- *recipe*: the ablation on LCBench and TaskSet that preceded the method, 40 variants on three
  seeds; it is not part of this repository.
- *notebook*: benchmarks/notebook.md, section "Freeze-thaw" unless another one is named.
- *convention*: a customary value that was never compared with others.

Guards against rounding errors are not tuning numbers; they stand where they are used.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Numbers:
    """The numbers of the method. Settings that users may change are fields of `FreezeThaw`."""

    # --- 1. levels, slices and rows ---------------------------------------------------------------

    level_ratio: float = 1.6
    """Each level over the one before. Recipe; 2 was worse in the notebook (+.021 ± .008)."""
    largest_level_before_full: float = 0.85
    """A level beyond this share of the full budget is replaced by the full budget. Recipe."""
    first_slice_exponent: float = 1.0 / 6.0
    """In a continuous space first slices end this far from the lowest to the full budget, on a
    logarithmic axis. Notebook, "Early": a quarter of the way was worse at a quarter of the budget."""

    peak_of_normal_noise: float = 0.2815
    """The mean height of peaks in normal noise of deviation 1. Convention: simulated."""

    least_peaks: int = 8
    """Reports with two neighbours that an estimate of the scatter needs. Convention."""

    largest_scatter: float = 0.3
    """The scatter beyond which the lowest loss of a run is luck. Notebook, "Misleading low levels": live
    training has .0 to .2 in most studies, Hartmann functions with noisy levels .3 to 1."""

    scatter_share_after_whole: float = 0.5
    """The share of that scatter which is enough once a whole training was granted. Notebook: regret at
    the end of Hartmann functions with misleading levels -.28 ± .09."""

    # --- 2. budget left ---------------------------------------------------------------------------

    full_trainings_without_limit: float = 20.0
    """The length of a study without a limit, in full trainings. Recipe: the length of its runs."""
    min_trials_to_predict_cost: int = 4
    """Trials with a known cost before costs of other configurations are predicted. Convention."""
    cost_ridge: float = 0.3
    """The penalty of the regression of log costs on features between 0 and 1. Convention; the rule
    is measured in the notebook, "Real training"."""
    smallest_cost_difference: float = 1e-6
    """Log costs that differ by less are equal up to rounding. Convention."""

    # --- 3. first design --------------------------------------------------------------------------

    first_configs_of_list: int = 4
    """Configurations of the first design in a list, and the least in a continuous space. Recipe."""
    first_configs_per_parameter: int = 3
    """Configurations of the first design for each parameter of a continuous space. Notebook: 3
    instead of 3.3, together with the gain for each unit, gave -.137 ± .018 at a quarter of the budget
    on the GPT surrogate."""
    first_design_share: float = 0.1
    """The share of the budget after which the first design of a continuous space ends. Notebook,
    "Early": .25 was worse at a quarter of the budget, .06 at the end on the GPT surrogate."""
    leader_exponent: float = 0.75
    """Leaders of the first design continue this far from the lowest to the full budget, on a
    logarithmic axis. Notebook: whole trainings of leaders cost more at the end."""
    first_configs_compared_by_cost: int = 3
    """Points of the first design of which the cheapest is taken, if costs count (notebook)."""

    # --- 4. model: targets ------------------------------------------------------------------------

    target_quantile: float = 0.7
    """The cap of the targets lies as far above this quantile of the losses as the quantile lies
    above the lowest loss. Recipe."""
    target_shift_of_list: float = 0.05
    """The shift below the lowest loss in a list, as a share of the range of losses. Recipe: better
    than 0.2 on LCBench."""
    target_shift: float = 0.5
    """The shift in a continuous space, and with several metrics. Notebook: -.053 ± .018 at the end
    on the GPT surrogate."""
    failure_target: float = 1.0
    """A failed run counts as the cap and this many standard deviations more. Notebook: -.137 ± .019
    on the two tasks of TaskSet where runs fail most often."""

    # --- 4. model: the process over curves --------------------------------------------------------

    length_scale_mode: float = 0.3
    """The prior's mode of a length scale, in diagonals of the unit cube. Notebook: shorter than the
    0.8 of the recipe; 0.22 and 0.4 gave no gain."""
    length_scale_log_bound: float = 4.0
    """The largest absolute value of the logarithm of a length scale. Recipe."""
    length_scale_deviation: float = 1.0
    """The prior's standard deviation of that logarithm. Recipe."""
    prior_means: tuple[float, ...] = (-0.8, 0.2, -3.0, -0.5, -0.5, -5.0, 0.0, -1.0, 0.0)
    """The prior's means of the nine shared parameters in the order of `CurveParameters`: logarithms
    but for the last three. Recipe, design B5; slope and growth from the notebook."""
    prior_deviations: tuple[float, ...] = (1.22, 1.22, 1.22, 0.7, 0.7, 1.4, 1.0, 1.0, 0.7)
    """The prior's standard deviations of these. Recipe; slope and growth: convention."""
    lower_bounds: tuple[float, ...] = (-5.0, -5.0, -5.0, -3.0, -3.0, -11.0, -3.0, -6.0, -4.0)
    """The lowest values of these. Recipe; slope and growth: convention."""
    upper_bounds: tuple[float, ...] = (3.0, 3.0, 3.0, 2.0, 2.0, 0.0, 3.0, 6.0, 4.0)
    """The highest values of these. Recipe; slope and growth: convention."""
    least_noise: float = 1e-6
    """The variance that is added to the fitted noise. Recipe."""
    likelihood_weight_of_list: float = 0.3
    """The weight of the log likelihood against the log prior in a list; in a continuous space it
    is 1. Notebook: a weight below 1 was worse there (+.022 ± .010)."""
    fit_iterations: int = 8
    """Iterations of one fit. Recipe; 20 gained on one problem and lost on two in the notebook."""
    refit_growth: float = 0.25
    """The hyperparameters are fitted again when the rows have grown by this share of those at the last
    fit, or of `max_rows` where these are fewer. Recipe: worse at a doubling. Notebook: with the limit
    a decision costs the same in a long study."""
    max_rows_of_fit: int = 150
    """Rows that one fit looks at. Recipe, design B2."""
    best_share_of_fit: int = 3
    """One in so many of these rows goes to the lowest losses; the others are drawn. Recipe."""
    max_rows: int = 300
    """Rows at a fit beyond which those of the worst trials are dropped. Recipe, design B1."""
    rows_after_dropping: int = 240
    """Rows that remain. Recipe."""
    least_log_budget_ratio: float = math.log(10.0)
    """The time axis is at least as long as that of a budget range of 1 to 10. Convention."""
    run_length_ridge: float = 0.01
    """The penalty of the regression of log run lengths on the configuration. Convention; the rule is
    measured in the notebook: DeBERTa, -0.020 ± 0.008."""

    # --- 4. model: past studies -------------------------------------------------------------------

    min_rows_of_past_study: int = 20
    """Rows of a past study before its curves are fitted. Convention."""
    fit_iterations_of_past_study: int = 30
    """Iterations of that fit. Convention."""
    hint_samples: int = 512
    """Configurations that the range of the hint is measured on in a continuous space. Convention."""
    hint_length_scale: float = 0.5
    """The prior's mode of the length scale along the hint, where past studies centre the prior;
    without such a centre it is the usual mode. Convention."""

    # --- 5. whole trainings -----------------------------------------------------------------------

    least_foretold: float = 0.2
    """The share of the variance of ends that first slices must foretell; below it whole trainings
    are granted where reports scatter. Notebook: where levels are noise it is .02 to .2, on the GPT
    surrogate .33 to .5."""

    ends_per_first_end: int = 2
    """The budget left must allow this many times the ends that Bayesian optimization begins with.
    Notebook: real training of 13 parameters with 12 full trainings lost by whole trainings."""

    # --- 5. scouts --------------------------------------------------------------------------------

    near_best_share: float = 0.02
    """Trials whose loss is within this share of the range of losses (cap - lo of the targets) from
    the best form its crowd; trials whose expected ends are as close are its copies. Convention."""
    crowd_slope: float = 3.0
    """The probability of a scout over the share of all trials in the crowd. Convention; the rule is
    measured in the notebook: plateau trap of TaskSet."""
    max_scouting_probability: float = 0.75
    """The largest probability of a scout. Convention."""
    plateau_probability: float = 0.375
    """From this probability of a scout by the crowd on, trials of the crowd that are stuck get no
    more training. It is reached when crowd - 1 is an eighth of all trials. Convention."""
    stuck_levels: int = 2
    """Levels over which a trial on a plateau has to fall. Convention."""
    stuck_share: float = 0.01
    """The share of the range of losses that it has to fall by over these levels. Convention."""
    max_probability_by_copies: float = 1.0 / 3.0
    """The largest probability of a scout that copies of the best call for. Convention; the rule is
    measured in the notebook: YAHPO -.021 ± .013."""

    # --- 6. new configurations --------------------------------------------------------------------

    new_configs_drawn: int = 300
    """Random configurations of a draw. Recipe."""
    new_configs_scanned: int = 1000
    """Further configurations that the model looks at for a draw. Convention."""
    new_configs_promising: int = 60
    """Scanned ones that the model chooses for a low start, and as many for a low end. Convention."""
    best_trials_perturbed: int = 5
    """Best configurations whose perturbations are scanned too in a continuous space. Convention."""
    perturbed_share: float = 0.5
    """The share of parameters that such a perturbation moves. Convention."""
    perturbation_log2_widths: tuple[float, float] = (1.0, 7.0)
    """Widths of these perturbations: 2 to the minus this range. Convention."""
    decisions_per_draw_of_list: int = 10
    """Decisions until the next draw in a list, and with several metrics. Recipe, design B3."""
    decisions_per_draw: int = 5
    """Decisions until the next draw with one metric in a continuous space. Notebook: .000 ± .005
    against ten, better on seeds 0 to 9."""
    trade_offs_per_draw: int = 4
    """Random trade-offs between several metrics that promising configurations are chosen by, at the
    start and at the end of training each. Convention."""

    # --- 7. questions -----------------------------------------------------------------------------

    least_race_log_gain: float = math.log(1e-3)
    """The log expected improvement, in standard deviations of the targets, that a candidate must
    reach in the race. Convention."""
    least_horizon_score: float = -8.0
    """The score that a candidate must reach at a horizon, in standard deviations: no error of the
    model explains less. Notebook: other values gave no gain."""
    threshold_factor: float = 2.0
    """The threshold lies this factor times a random number below the best target. Recipe."""
    threshold_log10_range: tuple[float, float] = (-4.0, -1.0)
    """The decimal logarithm of that random number. Recipe."""

    # --- 8. scores: the nominee of a continuous space ---------------------------------------------

    generations: int = 8
    """Generations of the evolution. Notebook: twice as many made no difference."""
    parents: int = 8
    """Configurations that live on from one generation to the next. Convention; the evolution is
    measured in the notebook: -0.039 ± 0.017 on the GPT surrogate."""
    children: int = 10
    """Steps from each parent. Convention."""
    moving_share: float = 0.3
    """The share of parameters that a step moves. Convention."""
    step_log2_widths: tuple[float, float] = (1.0, 6.0)
    """Widths of steps: 2 to the minus this range, a half to a sixty-fourth. Convention."""
    climbed_share: float = 0.2
    """The largest share of nominees that are found by climbing. Convention; no climbs at all made no
    difference on the GPT surrogate (notebook), but optima at bounds need them."""
    climbed_corners: float = 25.0
    """In d dimensions at most this number over 2^d of the nominees are climbed to: a climb pays
    where a study can look at many corners. Convention."""
    climb_starts: int = 4
    """Starting points of a climb. Convention."""
    climb_cycles: int = 2
    """Cycles of ascent and discrete moves of a climb. Convention."""
    climb_rounds: int = 20
    """Rounds of one ascent. Convention."""
    rivals_shown: int = 4
    """Candidates that a decision records: the winner and its closest competitors. Convention."""

    # --- several metrics --------------------------------------------------------------------------

    constant_share: float = 0.02
    """A metric is constant when it varies within trials by at most this share of its variation
    between trials. Convention."""
    constant_share_of_few_trials: float = 1e-9
    """That share while few trials have two reports: only equal values are constant. Notebook,
    "Fronts with training budgets"."""
    trials_to_tell_constant: int = 4
    """Trials with two reports before a small variation counts as none. Notebook, "Fronts with
    training budgets"."""
    front_target_margin: float = 0.1
    """The cap of the targets lies at least this share beyond the worst of the front. Convention."""
    least_log_growth: float = math.log(1e-5)
    """The log of the share of the volume that a candidate must add to the front. Convention."""
    reference_optimism: float = 2.0
    """Standard deviations by which ends may be better where the reference is set. Convention."""
    reference_promising: int = 8
    """The most promising candidates of each metric that say how far the front may reach in the
    others. Convention."""
    reference_margin: float = 0.1
    """The distance of the reference point beyond the front, as a share of its range. At a level: its
    distance beyond a quantile of the losses there, as a share of the quantile's absolute value.
    Convention."""
    level_reference_quantile: float = 0.7
    """The reference point of a level lies at least beyond this quantile of its losses. Convention."""


NUMBERS = Numbers()
