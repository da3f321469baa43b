"""Names of methods and settings as the papers and the reference systems write them, and what they
are called here.

    canonical_name("HYPERTUNE4-INDEP", known)          "hypertune4-indep"
    SETTINGS["max_size_data_for_model"]                "max_data"
    elsewhere("grace_period")                          where a thing is said here that is no setting
                                                       of a method

A setting that means the same under another name is taken under that name; for one that is said
elsewhere, or in other units, the error says where and how.
"""

import re
from collections.abc import Collection

__all__ = ["SETTINGS", "canonical_name", "elsewhere", "with_brackets"]

_METHODS = {
    "rs": "random",
    "randomsearch": "random",
    "gridsearch": "grid",
    "bo": "gp-ei",
    "bayesianoptimization": "gp-ei",
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
"""Letters and digits of other names, and what they are called here."""

SETTINGS = {
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
"""Settings that mean the same, with the same values."""

_BRACKETED = re.compile(r"(asha|hyperband|bohb|mobster|hypertune)([1-9]\d?)([a-z]*)")

_BUDGET = "the budget of the study says it: scrimp.Budget('epoch', minimum, maximum)"
_ELSEWHERE = {
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
        "the budget and 'reduction' or 'increment' say it; levels of one's own cannot be listed"
    ),
    "rung_system_per_bracket": (
        "brackets share one set of rungs here; with bracket_rule='in-turn' each has its own"
    ),
    "search_options": "write its entries as settings of the method itself",
    "searcher": (
        "the name of the method says it: asha (random), bohb (kde), mobster-joint (bayesopt)"
    ),
    "time_attr": f"it is the name; {_BUDGET}",
    "top_n_percent": "it is called 'share' here, from 0 to 1: 15 percent are share=0.15",
}


def canonical_name(name: str, known: Collection[str]) -> str:
    """The name here of a method written as in a paper; ``name`` itself where nothing fits. Letters
    and digits decide.

    >>> canonical_name("SyncMOBSTER", ["sync-mobster"]), canonical_name("TAF (RGPE)", ["taf-rgpe"])
    ('sync-mobster', 'taf-rgpe')
    """
    if name in known:
        return name
    meant = _squeezed(_METHODS.get(_squeezed(name), name))
    return next((one for one in known if meant and _squeezed(one) == meant), name)


def with_brackets(name: str, known: Collection[str]) -> tuple[str, int] | None:
    """The name here, and how many brackets, of a method that says both, as in plots of Syne Tune.

    >>> with_brackets("ASHA6-STOP", ["asha", "asha-stopping"])
    ('asha-stopping', 6)
    """
    parts = _BRACKETED.fullmatch(_squeezed(name))
    if parts is None:
        return None
    own = canonical_name(parts[1] + parts[3], known)
    return (own, int(parts[2])) if own in known else None


def _squeezed(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def elsewhere(setting: str) -> str | None:
    """What to write instead of a setting of the reference systems that is none here; None for any
    other word."""
    return _ELSEWHERE.get(setting)
