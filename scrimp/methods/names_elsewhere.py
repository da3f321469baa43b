"""Names and settings of papers and other systems, and their names here.

canonical_name("SyncMOBSTER", names)       # sync-mobster
SETTINGS_ELSEWHERE["reduction_factor"]     # reduction
hint_for("xi", settings)                   # what an error message adds about an unknown setting
"""

import re
from collections.abc import Collection

from scrimp.checks import did_you_mean


def canonical_name(name: str, known: Collection[str]) -> str:
    """The name here of a method written as in a paper, compared by letters and digits; ``name``
    itself where nothing fits.

    >>> canonical_name("SyncMOBSTER", ["sync-mobster"]), canonical_name("TAF (RGPE)", ["taf-rgpe"])
    ('sync-mobster', 'taf-rgpe')
    """
    if name in known:
        return name
    meant = _squeezed(_NAMES_ELSEWHERE.get(_squeezed(name), name))
    return next((one for one in known if meant and _squeezed(one) == meant), name)


def with_brackets(name: str, known: Collection[str]) -> tuple[str, int] | None:
    """The name here and the number of brackets of a method that has both in its name, as in plots of
    Syne Tune.

    >>> with_brackets("ASHA6-STOP", ["asha", "asha-stopping"])
    ('asha-stopping', 6)
    """
    parts = _BRACKETED.fullmatch(_squeezed(name))
    if parts is None:
        return None
    own = canonical_name(parts[1] + parts[3], known)
    return (own, int(parts[2])) if own in known else None


def hint_for(key: str, valid: Collection[str]) -> str:
    """Return what is known about a setting that a method does not have: its name among the ``valid``
    ones, or the methods that have it."""
    meant = _MEANT.get(key) or SETTINGS_ELSEWHERE.get(key, "")
    owner = _BELONGS.get(meant, "other methods")
    if meant in valid:
        return f"; it is called {meant!r} here{_UNITS.get(key, '')}."
    if meant:
        return f"; {'it' if key == meant else f'{meant!r}, its name here,'} belongs to {owner}."
    return did_you_mean(key, sorted(valid), ".")


def _squeezed(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


_NAMES_ELSEWHERE = {
    "rs": "random",
    "randomsearch": "random",
    "gridsearch": "grid",
    "bo": "gp-ei",
    "bayesianoptimization": "gp-ei",
    "bayesopt": "gp-ei",
    "ego": "gp-ei",
    "kde": "tpe",
    "ashaprom": "asha",
    "ashapromotion": "asha",
    "ashastop": "asha-stopping",
    "sha": "sync-sh",
    "successivehalving": "sync-sh",
    "synchb": "sync-hyperband",
    "medianstoppingrule": "median",
    "msr": "median",
    "mobster": "mobster-joint",
    "hypertune": "hypertune-indep",
    "hypertune1indep": "hypertune-indep",
    "taf": "taf-r",
    "tst": "tst-r",
    "poe": "pogpe",
    "gpoe": "pogpe",
}
"""Names of methods in papers and other systems, letters and digits only, with the name here."""

SETTINGS_ELSEWHERE = {
    "acq_function": "acquisition",
    "crossover_probability": "crossover",
    "eta": "reduction",
    "exponent_cost": "cost_exponent",
    "gp_base_kernel": "kernel",
    "gp_resource_kernel": "resource_kernel",
    "hypertune_distribution_num_samples": "samples",
    "max_size_data_for_model": "max_data",
    "min_points_in_model": "initial",
    "min_samples_required": "least",
    "mutation_factor": "mutation",
    "num_candidates": "candidates",
    "num_fantasy_samples": "fantasies",
    "num_init_candidates": "candidates",
    "num_init_random": "initial",
    "opt_maxiter": "refit_steps",
    "opt_skip_init_length": "refit_from",
    "opt_skip_period": "refit_every",
    "reduction_factor": "reduction",
    "resource_acq": "r_acq",
    "resource_acq_bohb_threshold": "r_acq_points",
    "rung_increment": "increment",
    "searcher_data": "data",
    "separate_noise_variances": "separate_noise",
}
"""Settings of other systems with the name here; their values mean the same."""

_MEANT = {
    "acq": "acquisition",
    "acq_func": "acquisition",
    "acquisition_function": "acquisition",
    "alpha": "noise",
    "beta": "kappa",
    "eps": "margin",
    "epsilon": "margin",
    "gamma": "share",
    "kappa": "kappa",
    "margin": "margin",
    "n_ei_candidates": "candidates",
    "n_initial_points": "initial",
    "n_random_starts": "initial",
    "n_restarts": "restarts",
    "n_restarts_optimizer": "restarts",
    "n_startup_trials": "initial",
    "population_size": "population",
    "reduction": "reduction",
    "xi": "margin",
}
"""Settings of other libraries with the name that comes closest here; error messages point to it."""

_MARGIN = (
    ", in standard deviations of the losses; with margin_unit=metric in the metric's own units"
)

_UNITS = {
    "alpha": ", as a share of the variance of the losses",
    "beta": ": kappa is the square root of BoTorch's beta",
    "eps": _MARGIN,
    "epsilon": _MARGIN,
    "gamma": ": the share of trials that count as good",
    "xi": _MARGIN,
}

_BELONGS = {
    "acquisition": "the gp methods",
    "kappa": "the acquisition 'ucb': 'gp-ucb:kappa=2', or 'gp:acquisition=ucb,kappa=2'",
    "margin": "the acquisitions 'ei', 'log-ei' and 'pi' of the gp methods: 'gp-ei:margin=0.01'",
    "noise": "the gp methods",
    "population": "'nsga2'",
    "reduction": "methods with rungs: 'asha:reduction=3'",
    "refit_every": "methods with models of budgets; the gp methods have 'refit_share'",
    "refit_from": "methods with models of budgets; the gp methods have 'refit_share'",
    "restarts": "the gp methods",
    "share": "'tpe' and 'bohb'",
}
"""Methods that have a setting, for messages of methods that do not."""

_BRACKETED = re.compile(r"(asha|hyperband|bohb|mobster|hypertune)([1-9]\d?)([a-z]*)")

_BUDGET = "it is part of the study's budget: scrimp.Budget('epoch', minimum, maximum)"
ANSWERS = {
    "allow_duplicates": "configurations repeat only in a study with noisy=True",
    "boxcox_transform": "methods without a budget have transform='power'",
    "constraint_attr": "create_study takes it: constraints={'memory_gb': scrimp.AtMost(16)}",
    "cost_attr": "create_study takes it: cost='seconds'",
    "cutoff_percentile": "it is called 'quantile' here, from 0 to 1",
    "grace_period": f"it is the minimum; {_BUDGET}",
    "initial_scoring": (
        "the mobster methods have it; elsewhere candidates are ranked by the acquisition itself"
    ),
    "max_resource": f"it is the maximum; {_BUDGET}",
    "max_resource_attr": f"it is the maximum; {_BUDGET}",
    "max_resource_level": f"it is the maximum; {_BUDGET}",
    "max_t": f"it is the maximum; {_BUDGET}",
    "metric": "create_study takes it: metric='val_error'",
    "mode": "create_study takes it: direction='minimize' or 'maximize'",
    "n_workers": "study.optimize takes it: workers=4",
    "no_fantasizing": "running trials always count here; fantasies=1 is the cheapest",
    "normalize_targets": "targets are always brought to one scale here",
    "opt_nstarts": (
        "fits begin at the hyperparameters of the last decision here, or with fresh_fits=true at"
        " two points; methods without a budget have restarts=1"
    ),
    "opt_warmstart": (
        "fits begin at the hyperparameters of the last decision here, unless fresh_fits=true"
    ),
    "points_to_evaluate": "study.enqueue takes them, one after the other",
    "random_seed": "create_study takes it: seed=0",
    "resource_attr": f"it is the name; {_BUDGET}",
    "rung_levels": (
        "rungs follow from the budget and 'reduction' or 'increment'; they cannot be listed"
    ),
    "rung_system_per_bracket": (
        "brackets share one set of rungs here; with bracket_rule='in-turn' each has its own"
    ),
    "search_options": "write its entries as settings of the method itself",
    "searcher": (
        "it is part of the name of the method: asha (random), bohb (kde), mobster-joint (bayesopt)"
    ),
    "time_attr": f"it is the name; {_BUDGET}",
    "top_n_percent": "it is called 'share' here, from 0 to 1: 15 percent are share=0.15",
}
"""Settings of other systems that are written elsewhere, or in other units."""
