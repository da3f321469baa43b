"""The studies that are played, by name: every method, and everything that a study may be given."""

from typing import Any

import problems
from drivers import Choosing, Commands, Past, Play, Simulation
from spellings import scrimp, seconds_passed

EPOCHS = ("epoch", 1, 27)
FEW = ("epoch", 1, 9)
TWO = {"val_error": "minimize", "latency": "minimize"}
THREE = {"val_error": "minimize", "latency": "maximize", "memory": "minimize"}
CURVED = {"val_error": "minimize", "energy": "minimize"}
FIVE = dict.fromkeys(("val_error", "latency", "memory", "energy", "dollars"), "minimize")
SEVEN = FIVE | {"balance": "minimize", "pace": "minimize"}
FEATURES = {"features": {"rows": 150.0, "classes": 3.0}}

Plan = Play | Simulation | Choosing | Commands


def _listed() -> Any:
    return problems.pool(problems.mixed(), 40)


def _short_list() -> Any:
    return problems.pool(problems.nested(), 10)


def _list_of_numbers() -> Any:
    return problems.pool(problems.numbers(), 40)


def all_plans() -> dict[str, Plan]:
    """Every study by its name, in the order in which they are played."""
    return {
        **_single_fidelity(),
        **_gaussian_processes(),
        **_asked_otherwise(),
        **_budgets(),
        **_budget_settings(),
        **_freeze_thaw(),
        **_several_metrics(),
        **_several_with_budgets(),
        **_past_studies(),
        **_past_settings(),
        **_past_with_budgets(),
        **_lists(),
        **_much_data(),
        **_simulations(),
        **_checkpoints(),
        **_commands(),
    }


def _single_fidelity() -> dict[str, Plan]:
    texts = {
        "auto": 12,
        "random": 16,
        "sobol": 16,
        "gp": 16,
        "gp-ei": 12,
        "gp-pi": 12,
        "gp-ucb": 12,
        "tpe": 20,
        "nsga2": 30,
        "parego": 10,
        "tpe:multivariate=false,spread=neighbours,share=0.15,weighting=equal,avoid_running=false": 18,
        "tpe:initial=5,design=random,max_data=none,uniform=0,widening=3": 18,
        "nsga2:population=8,crossover=0.7": 24,
    }
    plans: dict[str, Plan] = {text: Play(text, asks=asks) for text, asks in texts.items()}
    plans["grid"] = Play("grid", problems.discrete, asks=30)
    plans["grid:resolution=3"] = Play("grid:resolution=3", asks=20)
    plans["random to the end of a small space"] = Play("random", problems.discrete, asks=110)
    return plans


def _gaussian_processes() -> dict[str, Plan]:
    texts = (
        "gp:kernel=rbf-ard,initial=3",
        "gp:kernel=matern32-noard",
        "gp:kernel=matern52-noard,design=random",
        "gp:acquisition=thompson",
        "gp:acquisition=ucb,kappa=1.5",
        "gp:acquisition=pi,margin=0.05",
        "gp:input_warping=true",
        "gp:mcmc=true,initial=4",
        "gp:transform=copula",
        "gp:transform=power",
        "gp:transform=plain,patience=2",
        "gp:incumbent=observed,refit_share=0.0",
        "gp:restarts=3,noise_floor=0.001",
        "gp:max_data=10",
        "gp-ei:margin=0.01,margin_unit=metric",
        "gp-ei:incumbent=observed,refit_share=0,kernel=rbf-ard,design=random",
        "gp-ei:patience=6,transform=auto",
        "gp-ucb:schedule=growing,divisor=1.0",
        "gp-pi:margin=0.1",
    )
    plans: dict[str, Plan] = {text: Play(text, asks=12) for text in texts}
    plans["gp as a Method"] = Play(scrimp.Method("gp", initial=4, fantasies=4), asks=10)
    plans["gp with numbers"] = Play("gp", problems.numbers, asks=24)
    plans["gp with seed 5"] = Play("gp", asks=10, seed=5)
    return plans


def _asked_otherwise() -> dict[str, Plan]:
    limit = {"constraints": {"memory": scrimp.AtMost(6.0)}}
    limits = {"constraints": {"memory": scrimp.AtLeast(3.0), "balance": scrimp.Equals(0.55, 0.05)}}
    queue = ({"lr": 1e-3, "layers": 3, "optimizer": "adamw"}, {"layers": 7})
    return {
        "gp three at a time": Play("gp", asks=15, pending=3),
        "gp four in a batch": Play("gp", asks=16, pending=4, batch=True),
        "gp-ucb three at a time": Play("gp-ucb", asks=12, pending=3),
        "gp mcmc two at a time": Play("gp:mcmc=true,initial=4", asks=9, pending=2),
        "gp mcmc thompson": Play("gp:mcmc=true,acquisition=thompson,initial=4", asks=8),
        "gp thompson three at a time": Play("gp:acquisition=thompson", asks=12, pending=3),
        "tpe three at a time": Play("tpe", asks=18, pending=3),
        "gp maximizes": Play("gp", asks=12, direction="maximize"),
        "tpe maximizes": Play("tpe", asks=16, direction="maximize"),
        "gp noisy": Play("gp", problems.numbers, asks=14, noisy=True),
        "gp noisy discrete": Play("gp", problems.discrete, asks=16, noisy=True),
        "gp standard errors": Play("gp", asks=14, told=True),
        "gp at most": Play("gp", asks=14, settings=limit),
        "gp at least and equals": Play("gp", problems.numbers, asks=16, settings=limits),
        "gp thompson at most": Play("gp:acquisition=thompson", asks=12, settings=limit),
        "tpe at most": Play("tpe", asks=16, settings=limit),
        "gp cost": Play("gp", asks=12, cost="dollars"),
        "gp cost exponent": Play("gp:cost_exponent=0.5", asks=12, cost="dollars"),
        "gp cost by the clock": Play("gp", limits={"trials": 10}, cost="seconds"),
        "gp cost and at most": Play("gp:mcmc=true", asks=10, settings=limit, cost="dollars"),
        "gp guesses": Play("gp", problems.guessed, asks=12),
        "gp-ucb guesses": Play("gp-ucb", problems.guessed, asks=10),
        "tpe guesses": Play("tpe", problems.guessed, asks=12),
        "random guesses": Play("random", problems.guessed, asks=8),
        "gp nested": Play("gp", problems.nested, asks=14),
        "tpe nested": Play("tpe", problems.nested, asks=16),
        "random nested": Play("random", problems.nested, asks=12),
        "sobol nested": Play("sobol", problems.nested, asks=12),
        "gp queue": Play("gp", asks=10, enqueue=queue),
        "tpe queue": Play("tpe", asks=12, enqueue=queue),
        "gp failures": Play("gp", asks=14, fails=(1, 4, 6, 9)),
        "gp failures three at a time": Play("gp", asks=12, fails=(2, 5), pending=3),
        "tpe failures": Play("tpe", asks=16, fails=(1, 4, 6, 9)),
        "gp failures tried again": Play("gp", asks=14, fails=(1, 4, 7), retry=9),
        "gp reopened": Play("gp", asks=12, reopen=3),
        "gp in a space that grows": Play("gp", problems.numbers, asks=14, grow=(7, problems.grown)),
        "tpe in a space that grows": Play(
            "tpe", problems.numbers, asks=16, grow=(8, problems.grown)
        ),
        "gp run": Play("gp", limits={"trials": 12}, fails=(3,)),
        "gp run until no improvement": Play(
            "gp", limits={"trials": 30, "until": scrimp.NoImprovement(4)}
        ),
        "gp run until a target or a time": Play(
            "gp",
            problems.numbers,
            limits={"until": scrimp.TargetReached(0.085) | seconds_passed(20)},
        ),
        "gp run with a time limit": Play("gp", limits={"seconds": 25.0}),
    }


def _budgets() -> dict[str, Plan]:
    asks = {
        "asha": 40,
        "asha-stopping": 24,
        "hyperband": 40,
        "sync-sh": 40,
        "sync-hyperband": 50,
        "bohb": 40,
        "sync-bohb": 45,
        "dehb": 45,
        "median": 16,
        "mobster-joint": 26,
        "mobster-indep": 26,
        "sync-mobster": 30,
        "hypertune-indep": 26,
        "hypertune-joint": 24,
        "hypertune4-indep": 26,
        "dyhpo": 28,
        "freeze-thaw": 50,
        "auto": 30,
    }
    plans: dict[str, Plan] = {
        f"{name} with epochs": Play(name, asks=count, training=EPOCHS)
        for name, count in asks.items()
    }
    for name in ("asha", "mobster-joint", "hypertune-indep", "dyhpo", "dehb", "sync-hyperband"):
        plans[f"{name} three at a time"] = Play(name, asks=24, training=FEW, pending=3)
    for name in ("random", "gp", "tpe", "sobol"):
        plans[f"{name} with epochs"] = Play(name, asks=14, training=FEW)
    return plans


def _budget_settings() -> dict[str, Plan]:
    texts = (
        "asha:type=stopping,brackets=3",
        "asha:cutoff=top,reduction=4",
        "asha:increment=3",
        "asha:full_rungs=true",
        "hyperband:cutoff=top,bracket_rule=in-turn",
        "bohb:brackets=3,type=stopping",
        "median:compare=best,among=ended,least=1,comparisons=none",
        "mobster-joint:brackets=4,type=stopping",
        "mobster-joint:acquisition=ucb,kappa=1.5",
        "mobster-joint:acquisition=thompson",
        "mobster-joint:random_fraction=0.0,margin=0.01,margin_unit=metric,fresh_fits=true,refit_steps=20,cap=false",
        "mobster-joint:initial_scoring=thompson_indep,resource_encoding=centred",
        "mobster-joint:resource_kernel=exp-decay-sum,kernel=rbf-ard",
        "mobster-joint:r_acq=final,input_warping=true",
        "mobster-joint:model=gp_expdecay,data=all",
        "mobster-joint:model=gp_issm,data=all",
        "mobster-joint:model=forest",
        "mobster-joint:model=deep_kernel",
        "mobster-indep:kernel=matern32-ard,design=random",
        "mobster-indep:separate_noise=true",
        "hypertune-indep:model=forest",
        "hypertune-indep:type=stopping,brackets=3,combine=mixture",
        "hypertune-joint:samples=20,fresh_fits=true",
        "dyhpo:model=deep_kernel",
        "dyhpo:probability_sh=0.0,incumbent=observed",
        "dyhpo:increment=3,acquisition=ei",
        "mobster-joint:resource_kernel=exp-decay-combined",
        "mobster-joint:resource_kernel=exp-decay-delta1",
        "mobster-joint:resource_kernel=freeze-thaw",
        "mobster-joint:resource_kernel=matern52,input_warping=true",
        "mobster-joint:resource_kernel=cross-validation",
        "mobster-joint:data=all,max_data=10",
        "mobster-joint:max_data=12",
        "hypertune-joint:brackets=3,random_fraction=0.3",
        "MOBSTER-JOINT:reduction_factor=4",
        "ASHA6-STOP",
    )
    plans: dict[str, Plan] = {text: Play(text, asks=20, training=EPOCHS) for text in texts}
    # recorded with a setting that never had an effect beside this model, and is refused now
    plans["mobster-joint:data=all,max_data=30,separate_noise=true"] = Play(
        "mobster-joint:data=all,max_data=30", asks=20, training=EPOCHS
    )
    for text in (
        "sync-sh:reduction=2",
        "sync-hyperband:rounding=down",
        "sync-bohb:rounding=down,share=0.15,candidates=64,spread=observed,widening=3,uniform=0",
        "dehb:rounding=down,repeats=true,vacancies=random",
        "dehb:mutation=0.7,crossover=0.3",
        "dehb:brackets=2",
    ):
        plans[text] = Play(text, asks=60, training=FEW)
    limit = {"constraints": {"memory": scrimp.AtMost(6.0), "val_error": scrimp.AtMost(0.6)}}
    queue = ({"lr": 1e-3, "layers": 3, "optimizer": "adamw"}, {"layers": 7})
    for name in ("asha", "bohb", "mobster-joint", "dyhpo"):
        plans[f"{name} at most"] = Play(name, asks=24, training=FEW, settings=limit)
        plans[f"{name} failures"] = Play(name, asks=22, training=FEW, fails=(1, 3, 6))
    for name in ("asha", "dehb", "sync-hyperband", "hypertune-indep", "dyhpo"):
        plans[f"{name} queue"] = Play(name, asks=18, training=FEW, enqueue=queue)
    for name in ("asha", "mobster-indep", "dyhpo", "dehb", "hypertune4-indep"):
        plans[f"{name} run"] = Play(name, training=FEW, limits={"trials": 9}, fails=(2,))
    plans["hyperband run to a total"] = Play("hyperband", training=FEW, limits={"total": 60.0})
    plans["asha of shares"] = Play("asha", asks=20, training=("share", 0.1, 1.0))
    plans["mobster-joint of shares"] = Play(
        "mobster-joint", problems.numbers, asks=16, training=("share", 0.1, 1.0)
    )
    plans["mobster-joint maximizes"] = Play(
        "mobster-joint", asks=18, training=FEW, direction="maximize"
    )
    plans["bohb maximizes"] = Play("bohb", asks=24, training=FEW, direction="maximize")
    plans["mobster-joint guesses"] = Play("mobster-joint", problems.guessed, asks=16, training=FEW)
    plans["mobster-joint nested"] = Play("mobster-joint", problems.nested, asks=16, training=FEW)
    plans["dehb nested"] = Play("dehb", problems.nested, asks=24, training=FEW)
    plans["mobster-joint standard errors"] = Play("mobster-joint", asks=16, training=FEW, told=True)
    plans["mobster-joint reopened"] = Play("mobster-joint", asks=16, training=FEW, reopen=5)
    plans["asha noisy"] = Play("asha", asks=20, training=FEW, noisy=True)
    return plans


def _freeze_thaw() -> dict[str, Plan]:
    limit = {"constraints": {"memory": scrimp.AtMost(6.0)}}
    queue = ({"lr": 1e-3, "x": 0.0, "y": 1.0}, {"x": 0.5})
    ft = "freeze-thaw"

    def one(**changes: Any) -> Play:
        return Play(
            **{"method": ft, "space": problems.numbers, "training": EPOCHS, "asks": 45, **changes}
        )

    return {
        "freeze-thaw numbers": one(asks=60),
        "freeze-thaw three at a time": one(pending=3),
        "freeze-thaw maximizes": one(direction="maximize"),
        "freeze-thaw at most": one(settings=limit, space=problems.mixed),
        "freeze-thaw cost": one(cost="dollars"),
        "freeze-thaw cost by the clock": one(
            space=problems.mixed, limits={"total": 120.0}, cost="seconds"
        ),
        "freeze-thaw guesses": one(space=problems.guessed),
        "freeze-thaw nested": one(space=problems.nested),
        "freeze-thaw queue": one(enqueue=queue),
        "freeze-thaw failures": one(fails=(1, 3, 6)),
        "freeze-thaw noisy": one(noisy=True),
        "freeze-thaw reopened": one(reopen=9),
        "freeze-thaw:initial=4,race=0.4": one(method="freeze-thaw:initial=4,race=0.4"),
        "freeze-thaw run to a total": one(limits={"total": 150.0}),
        "freeze-thaw run of 12 trials": one(limits={"trials": 12}),
        "freeze-thaw run of both": one(limits={"trials": 12, "total": 100.0}, fails=(2,)),
        "freeze-thaw run with a time limit": one(space=problems.mixed, limits={"seconds": 300.0}),
        "freeze-thaw on a plateau": one(plateau=0.3, asks=80, training=FEW),
        "freeze-thaw list on a plateau": one(
            space=_listed, plateau=0.3, limits={"total": 200.0}, training=FEW
        ),
        "freeze-thaw trainings that end": one(
            space=problems.mixed, short=True, limits={"total": 200.0}
        ),
        "freeze-thaw list of trainings that end": one(
            space=_listed, short=True, limits={"total": 200.0}
        ),
        "freeze-thaw failures tried again": one(fails=(1, 3, 6), retry=25),
        "freeze-thaw short trainings": one(training=FEW, limits={"total": 80.0}),
        "freeze-thaw list run to a total": one(space=_listed, limits={"total": 150.0}),
        "freeze-thaw list": one(space=_listed),
        "freeze-thaw list with a cost": one(space=_listed, cost="dollars"),
        "freeze-thaw list three at a time": one(space=_listed, pending=3),
        "freeze-thaw list failures": one(space=_listed, fails=(1, 3, 6)),
    }


def _several_metrics() -> dict[str, Plan]:
    asks = {
        "auto": 10,
        "gp": 12,
        "nsga2": 30,
        "parego": 12,
        "random": 12,
        "tpe": 18,
        "gp-ei": 10,
        "gp-ucb": 10,
        "sobol": 8,
    }
    plans: dict[str, Plan] = {
        f"{name} front": Play(name, asks=count, metrics=TWO) for name, count in asks.items()
    }
    limit = {"constraints": {"balance": scrimp.AtMost(0.6)}}
    aimed = {
        "reference": {"val_error": 1.0, "latency": 12.0},
        "goals": {"latency": 2.0},
        "weights": {"val_error": 2.0, "latency": 1.0},
    }
    plans |= {
        "gp front of three": Play("gp", asks=12, metrics=THREE),
        "gp front of seven": Play("gp", asks=10, metrics=SEVEN),
        "gp front mcmc": Play("gp:mcmc=true,initial=4", asks=8, metrics=TWO),
        "tpe front failures": Play("tpe", asks=16, metrics=THREE, fails=(2, 5)),
        "gp front of five": Play("gp", asks=10, metrics=FIVE),
        "nsga2 front of three": Play("nsga2", asks=26, metrics=THREE),
        "gp front with aims": Play("gp", asks=12, metrics=TWO, settings=aimed),
        "gp front at most": Play("gp", asks=12, metrics=TWO, settings=limit),
        "nsga2 front at most": Play("nsga2", asks=26, metrics=TWO, settings=limit),
        "gp front cost": Play("gp", asks=10, metrics=TWO, cost="dollars"),
        "gp front standard errors": Play("gp", problems.numbers, asks=12, metrics=TWO, told=True),
        "gp front three at a time": Play("gp", asks=12, metrics=TWO, pending=3),
        "parego front three at a time": Play("parego", asks=12, metrics=TWO, pending=3),
        "gp front failures": Play("gp", asks=12, metrics=TWO, fails=(2, 5)),
        "gp:trade_off=chebyshev front": Play("gp:trade_off=chebyshev", asks=10, metrics=THREE),
        "gp front of a list": Play("gp", _listed, asks=12, metrics=TWO),
        "nsga2 front nested": Play("nsga2", problems.nested, asks=26, metrics=TWO),
    }
    return plans


def _several_with_budgets() -> dict[str, Plan]:
    asks = {
        "auto": 40,
        "asha": 26,
        "bohb": 30,
        "dehb": 30,
        "sync-hyperband": 30,
        "mobster-joint": 18,
        "mobster-indep": 18,
        "hypertune-indep": 18,
        "hypertune-joint": 14,
        "dyhpo": 18,
        "median": 12,
    }
    plans: dict[str, Plan] = {
        f"{name} front with epochs": Play(name, asks=count, training=FEW, metrics=CURVED)
        for name, count in asks.items()
    }
    limit = {"constraints": {"memory": scrimp.AtMost(6.0)}}
    ft = {"method": "freeze-thaw", "training": FEW}
    soon = {"method": "freeze-thaw:initial=5", "training": FEW}
    plans |= {
        "freeze-thaw front": Play(**ft, space=problems.numbers, asks=30, metrics=TWO),
        "freeze-thaw front of three": Play(**soon, asks=20, metrics=THREE),
        "freeze-thaw front of a list": Play(**ft, space=_listed, asks=24, metrics=CURVED),
        "freeze-thaw front at most": Play(**soon, asks=24, metrics=CURVED, settings=limit),
        "freeze-thaw front failures": Play(**soon, asks=24, metrics=CURVED, fails=(1, 4)),
        "freeze-thaw front of trainings that end": Play(
            "freeze-thaw", training=EPOCHS, limits={"total": 80.0}, metrics=CURVED, short=True
        ),
        "freeze-thaw front run": Play(
            **ft, space=problems.numbers, limits={"total": 60.0}, metrics=CURVED
        ),
        "freeze-thaw front three at a time": Play(**soon, asks=24, metrics=TWO, pending=3),
        "auto front of five with epochs": Play("auto", asks=20, training=FEW, metrics=FIVE),
        "mobster-joint front standard errors": Play(
            "mobster-joint", asks=14, training=FEW, metrics=TWO, told=True
        ),
    }
    return plans


def _past_studies() -> dict[str, Plan]:
    names = (
        "auto",
        "tst-m",
        "tst-r",
        "taf-m",
        "taf-r",
        "taf-rgpe",
        "taf-poe",
        "rgpe",
        "rmogp",
        "pogpe",
        "portfolio",
        "task-prior",
    )
    plans: dict[str, Plan] = {}
    for name in names:
        compared = FEATURES if name.endswith("-m") else {}
        plans[f"{name} with a past"] = Play(name, asks=10, past=Past(), settings=compared)
    for name in ("gp", "random", "tpe"):
        plans[f"{name} with a past"] = Play(name, asks=8, past=Past(count=2))
    return plans


def _past_settings() -> dict[str, Plan]:
    texts = (
        "rgpe:draws=posterior,dilution=percentile",
        "rgpe:variance=poe,normalise=copula",
        "rgpe:improvement=noisy,kernel=rbf-ard",
        "tst-r:normalise=min-max,bandwidth=0.3",
        "taf-r:normalise=log-regret,values=observed",
        "pogpe:experts=entropy,variance=rbcm",
        "pogpe:experts=all",
        "rmogp:denoise=false,samples=40",
        "task-prior:early=0.1,start=2,doubt=0.1",
        "tst-m:distance=euclidean",
    )
    plans: dict[str, Plan] = {}
    for text in texts:
        compared = FEATURES if text.startswith("tst-m") else {}
        plans[f"{text} with a past"] = Play(text, asks=8, past=Past(count=2), settings=compared)
    limit = {"constraints": {"memory": scrimp.AtMost(6.0)}}
    fronts = Past(count=2, metrics=TWO)
    plans |= {
        "auto past cost": Play("auto", asks=9, past=Past(count=2), cost="dollars"),
        "rgpe past cost": Play("rgpe", asks=8, past=Past(count=2), cost="dollars"),
        "auto past at most": Play("auto", asks=9, past=Past(count=2), settings=limit),
        "rgpe past at most": Play("rgpe", asks=8, past=Past(count=2), settings=limit),
        "auto past maximizes": Play(
            "auto", asks=9, past=Past(count=2, direction="maximize"), direction="maximize"
        ),
        "rgpe past maximizes": Play(
            "rgpe", asks=8, past=Past(count=2, direction="maximize"), direction="maximize"
        ),
        "auto past three at a time": Play("auto", asks=12, past=Past(count=2), pending=3),
        "rgpe past three at a time": Play("rgpe", asks=9, past=Past(count=2), pending=3),
        "auto past of another space": Play(
            "auto", asks=9, past=Past(count=2, space=problems.wider), learn_from="all"
        ),
        "rgpe past of another space": Play(
            "rgpe", asks=8, past=Past(count=2, space=problems.wider)
        ),
        "auto past that misleads": Play("auto", asks=11, past=Past(count=2, shift=1.6)),
        "auto past standard errors": Play("auto", asks=9, past=Past(count=2), told=True),
        "auto past failures": Play("auto", asks=10, past=Past(count=2), fails=(1, 4)),
        "auto past of a list": Play("auto", _listed, asks=10, past=Past(count=2)),
        "rgpe past of a list": Play("rgpe", _listed, asks=8, past=Past(count=2)),
        "portfolio past of a list": Play("portfolio", _listed, asks=8, past=Past(count=2)),
        "auto past reopened": Play("auto", asks=9, past=Past(count=2), reopen=3),
        "auto past guesses": Play(
            "auto", problems.guessed, asks=8, past=Past(count=2, space=problems.guessed)
        ),
        "auto past of fronts": Play("auto", asks=8, past=fronts, metrics=TWO),
        "task-prior past of fronts": Play("task-prior:start=2", asks=7, past=fronts, metrics=THREE),
        "gp past of fronts": Play("gp", asks=10, past=fronts, metrics=TWO),
        "nsga2 past of fronts": Play("nsga2", asks=12, past=fronts, metrics=TWO),
        "auto past of small fronts": Play(
            "auto", asks=8, past=Past(count=2, trials=4, metrics=TWO), metrics=TWO
        ),
        "auto past of fronts in a list": Play("auto", _listed, asks=8, past=fronts, metrics=TWO),
        "auto past of fronts at most": Play(
            "auto", asks=8, past=fronts, metrics=TWO, settings=limit
        ),
        "auto past of fronts cost": Play("auto", asks=8, past=fronts, metrics=TWO, cost="dollars"),
        "auto past of fronts three at a time": Play(
            "auto", asks=9, past=fronts, metrics=TWO, pending=3
        ),
        "auto past of small studies": Play("auto", asks=9, past=Past(count=2, trials=4)),
        "auto past of one metric for two": Play("auto", asks=8, past=Past(count=2), metrics=TWO),
    }
    return plans


def _past_with_budgets() -> dict[str, Plan]:
    plain = Past(count=2)
    curves = Past(count=2, training=FEW, method="asha", trials=22)
    fronts = Past(count=2, training=FEW, method="asha", trials=18, metrics=CURVED)
    plans: dict[str, Plan] = {}
    for name in ("auto", "asha", "mobster-joint", "hypertune-indep", "dyhpo", "bohb", "dehb"):
        asks = 32 if name == "auto" else 20
        plans[f"{name} past of curves"] = Play(name, asks=asks, past=curves, training=FEW)
    for name in ("auto", "asha", "mobster-joint", "bohb"):
        asks = 32 if name == "auto" else 16
        plans[f"{name} past without epochs"] = Play(name, asks=asks, past=plain, training=FEW)
    for name in ("auto", "mobster-joint", "dehb", "bohb"):
        plans[f"{name} past of curves of fronts"] = Play(
            name,
            asks=32 if name == "auto" else 16,
            past=fronts,
            training=FEW,
            metrics=CURVED,
        )
    plans |= {
        "freeze-thaw:hint=true past of curves": Play(
            "freeze-thaw:hint=true", asks=34, past=curves, training=FEW
        ),
        "freeze-thaw past of curves of a list": Play(
            "freeze-thaw", _listed, asks=20, past=curves, training=FEW
        ),
        "auto past of curves without epochs of its own": Play("auto", asks=9, past=curves),
        "rgpe past of curves with epochs": Play("rgpe", asks=6, past=curves, training=FEW),
    }
    return plans


def _lists() -> dict[str, Plan]:
    plans: dict[str, Plan] = {}
    for name in ("random", "sobol", "grid", "gp", "gp-ucb", "tpe", "nsga2"):
        asks = 34 if name == "nsga2" else 14
        plans[f"{name} of a list"] = Play(name, _listed, asks=asks)
    for name in ("asha", "bohb", "dehb", "mobster-joint", "hypertune-indep", "dyhpo", "sync-bohb"):
        plans[f"{name} of a list with epochs"] = Play(name, _listed, asks=20, training=FEW)
    plans["gp to the end of a list"] = Play("gp", _short_list, asks=12)
    plans["tpe to the end of a list"] = Play("tpe", _short_list, asks=12)
    plans["gp thompson of a list"] = Play(
        "gp:acquisition=thompson", _list_of_numbers, asks=12, pending=2
    )
    plans["freeze-thaw to the end of a list"] = Play(
        "freeze-thaw", _short_list, asks=60, training=FEW
    )
    plans["mobster-joint:model=gp_issm of a list"] = Play(
        "mobster-joint:model=gp_issm,data=all", _list_of_numbers, asks=18, training=FEW
    )
    return plans


def _much_data() -> dict[str, Plan]:
    many = Past(count=17, trials=9)
    ten = Past(count=10, trials=12)
    return {
        "gp after 320 trials": Play("gp", problems.numbers, asks=323, queued=320),
        "gp:max_data=100 after 200 trials": Play("gp:max_data=100", asks=203, queued=200),
        "gp front after 110 trials": Play("gp", asks=112, queued=110, metrics=TWO),
        "tpe after 200 trials": Play("tpe", asks=206, queued=200),
        "tpe:max_data=50 after 120 trials": Play("tpe:max_data=50", asks=126, queued=120),
        "mobster-joint after 80 trials": Play(
            "mobster-joint:max_data=60", asks=142, queued=80, training=FEW
        ),
        "hypertune-indep after 60 trials": Play(
            "hypertune-indep:max_data=40", asks=106, queued=60, training=FEW
        ),
        "dyhpo after 60 trials": Play("dyhpo:max_data=50", asks=98, queued=60, training=FEW),
        "freeze-thaw after 280 trials": Play(
            "freeze-thaw", problems.numbers, asks=325, queued=280, training=FEW
        ),
        "freeze-thaw front after 285 trials": Play(
            "freeze-thaw", problems.numbers, asks=308, queued=285, training=FEW, metrics=TWO
        ),
        "auto past of 17 studies": Play("auto", asks=9, past=many),
        "rgpe past of ten studies": Play("rgpe", asks=7, past=ten),
        "tst-r past of ten studies": Play("tst-r", asks=7, past=ten),
        "taf-r past of ten studies": Play("taf-r", asks=7, past=ten),
        "auto past of a long study": Play("auto", asks=8, past=Past(count=2, trials=310)),
    }


def _simulations() -> dict[str, Plan]:
    names = (
        "asha",
        "asha-stopping",
        "hyperband",
        "sync-hyperband",
        "bohb",
        "dehb",
        "median",
        "mobster-joint",
        "hypertune4-indep",
        "dyhpo",
        "freeze-thaw",
        "gp",
    )
    plans: dict[str, Plan] = {f"{name} simulated": Simulation(name) for name in names}
    plans["freeze-thaw simulated on one worker"] = Simulation("freeze-thaw", workers=1)
    plans["freeze-thaw simulated without times"] = Simulation("freeze-thaw", timed=False)
    plans["freeze-thaw simulated with ends"] = Simulation("freeze-thaw", ending=True)
    plans["asha simulated with ends"] = Simulation("asha", ending=True, workers=2)
    plans["mobster-joint simulated with ends"] = Simulation("mobster-joint", ending=True)
    plans["auto simulated on the second task"] = Simulation("auto", task="second", workers=2)
    plans["mobster-joint:type=stopping,brackets=2 simulated"] = Simulation(
        "mobster-joint:type=stopping,brackets=2", workers=3
    )
    return plans


def _checkpoints() -> dict[str, Plan]:
    texts = ("auto", "kg", "ei", "ei-icm", "independent", "top-two", "random", "stride", "last")
    plans: dict[str, Plan] = {f"{text} checkpoints": Choosing(text) for text in texts}
    for text in (
        "kg:coordinate=log",
        "kg:opens=0",
        "ei:coordinate=rank,opens=2",
        "top-two:coordinate=step",
        "ei-icm:rank=full,diagonal=true",
        "ei-icm:rank=3,coordinate=log",
        "independent:coordinate=rank",
    ):
        plans[f"{text} checkpoints"] = Choosing(text, cells=18)
    names = tuple(f"step-{number}" for number in range(100, 1700, 100))
    models = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
    costs = {"cost": {"mmlu": 9.0, "gsm8k": 3.0}}
    weights = {"weights": {"gsm8k": 2.0, "arc": 0.5}, "scales": {"piqa": 2.0}}
    turned = {"directions": {"wikitext": "minimize"}}
    plans |= {
        "kg costs": Choosing(settings=costs),
        "ei costs": Choosing("ei", settings=costs),
        "kg weights": Choosing(settings=weights),
        "ei-icm weights": Choosing("ei-icm", settings=weights),
        "kg directions": Choosing(settings=turned),
        "top-two directions": Choosing("top-two", settings=turned),
        "kg standard errors": Choosing(settings={"use_stderr": True}, told=True, belief=True),
        "kg standard errors unused": Choosing(settings={"use_stderr": False}, told=True),
        "kg belief": Choosing(belief=True),
        "ei-icm belief": Choosing("ei-icm", belief=True),
        "independent belief": Choosing("independent", belief=True),
        "kg four at a time": Choosing(pending=4),
        "ei four at a time": Choosing("ei", pending=4),
        "top-two four at a time": Choosing("top-two", pending=4),
        "kg failures": Choosing(fails=(1, 5, 11)),
        "kg given back": Choosing(given_back=3),
        "kg added checkpoints": Choosing(added=(9, (25000, 26000, 30000))),
        "ei-icm added checkpoints": Choosing("ei-icm", added=(13, (25000, 26000))),
        "kg names": Choosing(checkpoints=names),
        "kg models": Choosing(checkpoints=models, settings={"ordered": False}),
        "ei models": Choosing("ei", checkpoints=models, settings={"ordered": False}),
        "kg reopened": Choosing(reopen=5),
        "kg scores given": Choosing(given=9, cells=12),
        "kg tolerance": Choosing(settings={"tolerance": 0.02}, seed=4),
        "kg stops by share": Choosing(stop={"share": 0.1}, cells=40),
        "kg stops by budget": Choosing(settings=costs, stop={"budget": 40.0}, cells=40),
        "kg stops by loss": Choosing(stop={"loss": 0.01}, cells=40),
        "kg stops by loss per cost": Choosing(stop={"loss_per_cost": 0.0001}, cells=40),
        "kg run": Choosing(run={"share": 0.12}, fails=(4,)),
        "kg run with everything": Choosing(
            settings={**costs, **weights, **turned, "use_stderr": True},
            told=True,
            run={"budget": 60.0},
        ),
        "stride run": Choosing("stride", run={"share": 0.2}),
    }
    return plans


def _commands() -> dict[str, Plan]:
    return {
        "command select next": Commands(
            "select next {scores} --count 4 --cost mmlu=9.0 --json",
        ),
        "command bench transfer": Commands(
            "bench transfer {table} --methods gp,auto,rgpe --tasks all --trials 8 --sources full"
            " --seeds 1 --out {out}",
            "at,regret,solved,grid_rank",
        ),
        "command bench tables": Commands(
            "bench tables {table} --methods gp,tpe --tasks all --trials 12 --seeds 1 --out {out}",
            "at,regret",
        ),
        "command bench checkpoints": Commands(
            "bench checkpoints {scores} --methods kg,stride --shares 0.1,0.2 --seeds 1 --out {out}",
            "share,regret,smoothed_regret,probability_best,expected_loss",
        ),
        "command bench functions": Commands(
            "bench functions --methods gp,tpe --functions branin --trials 14 --seeds 1 --out {out}",
            "at,regret",
        ),
    }
