"""Settings that would have no effect are refused, and names of other libraries are answered."""

from typing import Any

import pytest

import scrimp
from scrimp.errors import MethodError
from scrimp.methods import named_methods
from scrimp.storage.memory import MemoryStorage
from scrimp.suggesters import model_settings
from scrimp.surrogates.exact_gp import ExactGP

SPACE = scrimp.Space(x=scrimp.Float(0, 1))
EPOCHS = scrimp.Budget("epoch", 1, 9)
TWO_METRICS: dict[str, Any] = {"metrics": {"a": "minimize", "b": "minimize"}}
LISTED = scrimp.Pool(scrimp.Space(x=scrimp.Int(0, 9)), [{"x": value} for value in range(10)])
CATEGORIES = scrimp.Space(x=scrimp.Categorical(["a", "b", "c"]), y=scrimp.Categorical(["d", "e"]))


def create(method: Any, epochs: bool = False, **more: Any) -> scrimp.Study:
    given = {"space": SPACE, "budget": EPOCHS if epochs else None, "storage": "memory://", **more}
    return scrimp.create_study("s", method=method, **given)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mobster-joint:separate_noise=true", "'separate_noise' has no effect with model='gp_mult"),
        ("hypertune-joint:separate_noise=true", "use model='gp_independent'"),
        ("mobster-indep:resource_kernel=matern52", "'resource_kernel' has no effect"),
        ("hypertune-indep:resource_kernel=matern52", "use model='gp_multitask'"),
        ("mobster-joint:model=forest,kernel=rbf-ard", "'kernel' has no effect with model='forest'"),
        ("dyhpo:model=deep_kernel,input_warping=true", "'input_warping' has no effect"),
        ("asha:increment=2,reduction=4", "'reduction' has no effect with increment=2.0"),
        ("asha:bracket_rule=in-turn", "with brackets=1: leave it out, or use brackets above 1"),
        ("sync-sh:rounding=down", "or use brackets above 1, or none or reduction that is no whole"),
        ("mobster-joint:refit_from=50", "with refit_every=1: leave it out, or use refit_every ab"),
        ("mobster-joint:model=forest,fresh_fits=true", "or use model other than 'forest'"),
        ("mobster-joint:model=forest,refit_steps=9", "'refit_steps' has no effect with model='f"),
        ("hypertune-indep:pending=median,fantasies=3", "or use pending='fantasies'"),
        ("gp-ei:margin_unit=metric", "has no effect with margin=0.0: leave it out, or use margin"),
        ("gp:acquisition=pi,margin=0,margin_unit=metric", "'margin_unit' has no effect"),
        ("tpe:spread=observed,bandwidth=0.2", "or use spread='range'"),
        ("bohb:published,bandwidth=0.2", "'bandwidth' has no effect with spread='observed'"),
        ("nsga2:crossover=0,spread=5", "'spread' has no effect with crossover=0.0"),
        ("nsga2:mutation=0,step=5", "or use mutation above 0"),
        ("asha-stopping:type=promotion", "use 'asha:type=promotion'"),
    ],
)
def test_settings_without_effect_are_refused(method: str, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        create(method, epochs=True)


@pytest.mark.parametrize(
    "method",
    [
        "mobster-indep:separate_noise=true",
        "mobster-joint:model=gp_independent,separate_noise=true",
        "mobster-joint:resource_kernel=matern52,kernel=rbf-ard",
        "mobster-joint:published",
        "mobster-joint:model=gp_expdecay,data=all,kernel=rbf-ard",
        "asha:increment=2",
        "asha:increment=2,reduction=4,cutoff=top",
        "asha:brackets=2,bracket_rule=in-turn",
        "hyperband:bracket_rule=in-turn",
        "hyperband:published",
        "sync-sh:published",
        "sync-sh:rounding=down,reduction=2.5",
        "sync-hyperband:rounding=down",
        "mobster-joint:refit_from=50,refit_every=3",
        "dyhpo:refit_from=50",
        "mobster-joint:model=deep_kernel,fresh_fits=true",
        "hypertune-indep:fantasies=3",
        "gp-ei:margin=0.1,margin_unit=metric",
        "gp:acquisition=pi,margin_unit=metric",
        "tpe:bandwidth=0.2",
        "nsga2:mutation=none,step=5,spread=5",
    ],
)
def test_the_same_settings_are_taken_where_they_have_one(
    method: str, recwarn: pytest.WarningsRecorder
) -> None:
    create(method, epochs=True)
    assert not recwarn.list


def test_a_kernel_has_no_effect_beside_another_surrogate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_settings, "_SURROGATES", model_settings._SURROGATES.copy())
    model_settings.register_surrogate("mine", ExactGP.over)
    create("gp:surrogate=mine")
    for setting in ("kernel=rbf-ard", "restarts=3", "noise_floor=0.001"):
        with pytest.raises(MethodError, match="has no effect with surrogate='mine'"):
            create(f"gp:surrogate=mine,{setting}")


@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("gp-ei:acquisition=ucb", "gp:acquisition=ucb"),
        ("gp-ucb:acquisition=thompson", "gp:acquisition=thompson"),
        ("parego:trade_off=hypervolume", "gp:trade_off=hypervolume"),
    ],
)
def test_the_name_of_a_method_cannot_be_contradicted(method: str, use: str) -> None:
    with pytest.raises(MethodError, match=f"use '{use}'"):
        create(method)
    create(use, metrics={"a": "minimize", "b": "minimize"})


def test_a_name_may_be_confirmed() -> None:
    create("gp-ei:acquisition=ei,margin=0.1")


def test_improvement_is_never_multiplied_by_cost() -> None:
    for method in ("gp", "rgpe", "task-prior"):
        with pytest.raises(MethodError, match="cost_exponent is -1"):
            create(f"{method}:cost_exponent=-1")


@pytest.mark.parametrize(
    ("method", "more", "ignored"),
    [
        ("gp", {}, False),
        ("random", {}, True),
        ("grid", {}, True),
        ("tpe", {}, True),
        ("asha", {"epochs": True}, True),
        ("mobster-joint", {"epochs": True}, True),
        ("freeze-thaw", {"epochs": True}, False),
        ("freeze-thaw", {"epochs": True, "metrics": {"a": "minimize", "b": "minimize"}}, True),
    ],
)
def test_a_cost_that_a_method_ignores_is_warned_about(
    method: str, more: dict[str, Any], ignored: bool, recwarn: pytest.WarningsRecorder
) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        create(method, cost="seconds", **more)
    said = [str(warning.message) for warning in recwarn]
    assert ["does not weigh the cost 'seconds'" in text for text in said] == [True] * ignored


@pytest.mark.parametrize(
    ("method", "more", "idle"),
    [
        ("gp:cost_exponent=0.5", {}, True),
        ("gp:cost_surrogate=gp", {}, True),
        ("rgpe:cost_exponent=0.5", {}, True),
        ("gp:cost_exponent=0.5", {"cost": "seconds"}, False),
        ("gp", {}, False),
    ],
)
def test_settings_of_a_cost_that_the_study_has_not_are_warned_about(
    method: str, more: dict[str, Any], idle: bool, recwarn: pytest.WarningsRecorder
) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        create(method, **more)
    said = [str(warning.message) for warning in recwarn]
    assert ["has no effect: the study has no cost" in text for text in said] == [True] * idle


@pytest.mark.parametrize(
    ("metrics", "idle"), [({}, True), ({"metrics": {"a": "minimize", "b": "minimize"}}, False)]
)
def test_a_trade_off_of_one_metric_is_warned_about(
    metrics: dict[str, Any], idle: bool, recwarn: pytest.WarningsRecorder
) -> None:
    create("gp:trade_off=chebyshev", **metrics)
    said = [str(warning.message) for warning in recwarn]
    assert ["'trade_off' has no effect: the study has one" in text for text in said] == [
        True
    ] * idle


@pytest.mark.parametrize("method", ["rgpe:dilution=none", scrimp.Method("rgpe", dilution=None)])
def test_none_may_be_a_text(method: Any) -> None:
    create(method)


@pytest.mark.parametrize("none", [None, "none", "None"])
def test_a_text_may_be_none(none: str | None) -> None:
    create(scrimp.Method("gp", initial=none))
    create(scrimp.Method("asha", brackets=none), epochs=True)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("gp:initial=few", "'initial' is 'few'; it must be a whole number, at least 1, or none"),
        ("gp:patience=1.5", "'patience' is 1.5; it must be a whole number"),
        ("gp:max_data=none", "'max_data' is none; it must be a whole number, at least 10"),
        ("gp:mcmc=maybe", "'mcmc' is 'maybe'; it must be true or false"),
        ("gp:transform=3", "'transform' is 3; it must be one of auto, plain"),
    ],
)
def test_errors_of_types_speak_as_users_write(method: str, words: str) -> None:
    with pytest.raises(MethodError, match=words) as caught:
        create(method)
    assert "null" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("gp:epsilon=0.1", "it is called 'margin' here"),
        ("gp-ei:xi=0.1", "it is called 'margin' here"),
        ("gp-ei:eps=0.1", "it is called 'margin' here"),
        ("tpe:xi=0.1", "'margin', its name here, belongs to the acquisitions"),
        ("gp-ucb:beta=4", "'kappa' here: kappa is the square root"),
        ("gp:beta=4", "gp-ucb:kappa=2"),
        ("gp:kappa=2", "it belongs to the acquisition 'ucb'"),
        ("gp:alpha=0.001", "it is called 'noise' here"),
        ("gp:n_restarts_optimizer=4", "it is called 'restarts' here"),
        ("tpe:n_restarts_optimizer=4", "'restarts', its name here, belongs to the gp methods"),
        ("tpe:n_startup_trials=5", "it is called 'initial' here"),
        ("gp:eta=4", "'reduction', its name here, belongs to methods with rungs"),
        ("gp:reduction_factor=4", "'reduction', its name here"),
        ("gp:acq_func=ei", "it is called 'acquisition' here"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(method: str, words: str) -> None:
    with pytest.raises(MethodError, match=words) as caught:
        create(method)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("tst-r:samples=10", "'samples' has no effect with weights='ranks'"),
        ("tst-r:dilution=probabilistic", "or use weights='ranking'"),
        ("rgpe:bandwidth=0.2", "or use weights='features' or weights='ranks'"),
        ("tst-r:distance=euclidean", "or use weights='features'"),
        ("rgpe:experts=all", "or use combine='poe'"),
        ("rgpe:denoise=false", "or use combine='rmogp'"),
        ("rgpe:dilution=none,alpha=0.5", "or use dilution='probabilistic'"),
        ("rgpe:dilution=percentile,horizon=20", "or use dilution='probabilistic'"),
        ("rgpe:weights=ranks,alpha=0.5", "'alpha' has no effect with weights='ranks'"),
        ("pogpe:experts=all,weights=ranks", "or use experts='single' or experts='entropy'"),
        ("rgpe:improvement=noisy,incumbent=observed", "or use improvement='ei'"),
        ("portfolio:initial=4", "'initial' has no effect with combine='portfolio'"),
        ("gp:noise=0.1,noise_floor=0.01", "so noise_floor has no effect"),
        ("gp-ucb:schedule=growing,kappa=2", "'kappa' has no effect with schedule='growing'"),
        ("gp-ucb:divisor=2", "or use schedule='growing'"),
    ],
)
def test_settings_of_weights_and_widths_that_are_not_used_are_refused(
    method: str, words: str
) -> None:
    with pytest.raises(MethodError, match="has no effect") as caught:
        create(method)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("gp:patience=-1", "patience is -1; it must be at least 0"),
        ("task-prior:patience=-1", "patience is -1; it must be at least 0"),
        ("rgpe:alpha=-0.5", "alpha is -0.5; it must be at least 0"),
        ("rgpe:horizon=0", "horizon is 0; it must be at least 1"),
        ("pogpe:variance=poe", "or use experts='entropy'"),
    ],
)
def test_values_that_mean_nothing_are_refused(method: str, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        create(method)
    create("pogpe:experts=entropy,variance=poe")


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mobster-joint:acquisition=ucb", "use acquisition='log-ei'"),
        ("mobster-joint:published", "use initial_scoring='acq_func'"),
        ("hypertune-indep:combine=linear", "use combine='mixture'"),
        ("dyhpo:incumbent=observed", "use incumbent='mean'"),
        ("median:compare=best", "use compare='average'"),
    ],
)
def test_settings_of_one_metric_are_refused_when_a_study_of_several_is_created(
    method: str, words: str
) -> None:
    with pytest.raises(MethodError, match="works with one metric only") as caught:
        create(method, epochs=True, metrics={"a": "minimize", "b": "minimize"})
    assert words in str(caught.value)
    create(method, epochs=True)


@pytest.mark.parametrize(
    ("method", "more", "idle"),
    [
        ("gp:patience=3", {"metrics": {"a": "minimize", "b": "minimize"}}, True),
        ("task-prior:patience=3", {"noisy": True}, True),
        ("task-prior:patience=3", {"metrics": {"a": "minimize", "b": "minimize"}}, True),
        ("gp:patience=0", {"metrics": {"a": "minimize", "b": "minimize"}}, False),
        ("gp:patience=3", {}, False),
        ("gp:margin=0.1", {"metrics": {"a": "minimize", "b": "minimize"}}, True),
        (
            "gp:margin=0.1,trade_off=chebyshev",
            {"metrics": {"a": "minimize", "b": "minimize"}},
            False,
        ),
        ("gp-ei:margin=0.1", {"metrics": {"a": "minimize", "b": "minimize"}}, False),
        ("gp:margin=0", {"metrics": {"a": "minimize", "b": "minimize"}}, False),
        ("gp:margin=0.1", {"metrics": dict.fromkeys("abcdefg", "minimize")}, False),
        ("mobster-joint:margin=0.1", {"epochs": True, **TWO_METRICS}, True),
        ("gp:margin=0.1", {}, False),
    ],
)
def test_patience_and_margins_that_several_metrics_ignore_are_warned_about(
    method: str, more: dict[str, Any], idle: bool, recwarn: pytest.WarningsRecorder
) -> None:
    create(method, **more)
    said = [str(warning.message) for warning in recwarn if "7 metrics" not in str(warning.message)]
    assert ["has no effect: with" in text for text in said] == [True] * idle


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mobster-joint:r_acq=final,r_acq_points=5", "or use r_acq='bohb'"),
        ("asha-stopping:full_rungs=true", "or use type='promotion'"),
        ("hypertune-indep:weighting=cubed,samples=10", "or use weighting='draws'"),
    ],
)
def test_settings_of_rungs_that_are_not_used_are_refused(method: str, words: str) -> None:
    with pytest.raises(MethodError, match="has no effect") as caught:
        create(method, epochs=True)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("method", "more", "idle"),
    [
        ("gp:trade_off=hypervolume", {"metrics": dict.fromkeys("abcdefg", "minimize")}, True),
        ("gp:trade_off=chebyshev", {"metrics": dict.fromkeys("abcdefg", "minimize")}, False),
        ("gp:acquisition=ei,trade_off=hypervolume", TWO_METRICS, True),
        ("gp:acquisition=ei,trade_off=chebyshev", TWO_METRICS, False),
        ("parego", {}, True),
        ("parego", TWO_METRICS, False),
        ("gp:incumbent=observed", TWO_METRICS, False),
        ("gp:acquisition=thompson,incumbent=observed", {}, True),
        ("gp:acquisition=thompson,incumbent=observed", {"cost": "seconds"}, False),
        ("gp:trade_off=chebyshev,refit_share=0", TWO_METRICS, True),
        ("gp:refit_share=0", TWO_METRICS, False),
        ("gp:input_warping=true", {"space": CATEGORIES}, True),
        ("gp:input_warping=true", {}, False),
        ("mobster-joint:input_warping=true", {"space": CATEGORIES, "epochs": True}, True),
        ("grid:resolution=3", {"space": LISTED}, True),
        ("grid:resolution=3", {}, False),
        ("tpe:bandwidth=0.2", {"space": CATEGORIES}, True),
        ("tpe:spread=observed", {"space": CATEGORIES}, True),
        ("tpe:least_bandwidth=0.2", {"space": CATEGORIES}, True),
        ("bohb:widening=2", {"space": CATEGORIES, "epochs": True}, True),
        ("nsga2:spread=5", {"space": CATEGORIES}, True),
        ("nsga2:step=5", {"space": CATEGORIES}, True),
        ("dehb:repeats=true", {"space": LISTED, "epochs": True}, True),
        ("dehb:repeats=true", {"epochs": True}, False),
        ("dehb:crossover=0.3", {"epochs": True}, True),
        ("dehb:crossover=0.3", {"space": CATEGORIES, "epochs": True}, False),
        ("mobster-joint:candidates=500", {"epochs": True}, True),
        ("mobster-joint:candidates=500", {"space": LISTED, "epochs": True}, False),
        (
            "mobster-joint:candidates=500,initial_scoring=thompson_indep",
            {"epochs": True},
            False,
        ),
        ("hypertune-indep:candidates=500", {"epochs": True}, True),
        ("hypertune-indep:candidates=500", {"space": LISTED, "epochs": True}, False),
        ("dyhpo:candidates=500", {"epochs": True}, False),
        (
            "mobster-joint:initial_scoring=thompson_indep",
            {"space": LISTED, "epochs": True},
            True,
        ),
        ("task-prior:early=0.5", TWO_METRICS, True),
        ("task-prior:own_turns=true", TWO_METRICS, True),
        ("task-prior:own_turns=true,early=0.5", {}, False),
    ],
)
def test_settings_that_a_study_rules_out_are_warned_about(
    method: str, more: dict[str, Any], idle: bool, recwarn: pytest.WarningsRecorder
) -> None:
    create(method, **more)
    said = [str(warning.message) for warning in recwarn if "7 metrics" not in str(warning.message)]
    assert ["no effect: " in text for text in said] == [True] * idle


def test_a_table_of_the_acquisition_is_looked_at_too(recwarn: pytest.WarningsRecorder) -> None:
    growing = {"schedule": "growing", "kappa": 2.0}
    with pytest.raises(MethodError, match="'kappa' has no effect with schedule='growing'"):
        create(scrimp.Method("gp-ucb", acquisition_settings=growing))
    create(scrimp.Method("gp", acquisition_settings={"margin": 0.1}), **TWO_METRICS)
    (said,) = [str(warning.message) for warning in recwarn]
    assert said.startswith("setting 'margin' has no effect: with several metrics")


def test_a_warning_says_why_and_what_to_do() -> None:
    with pytest.warns(UserWarning, match="no effect") as said:
        create("grid:resolution=3", space=LISTED)
        create("parego")
    assert [str(warning.message) for warning in said] == [
        "setting 'resolution' has no effect: the space is a list of configurations; leave the setting"
        " out",
        "method 'parego' stands for trade_off=chebyshev, which has no effect: the study has one"
        " metric; give several as metrics={'val_error': 'minimize', ...}, or use 'gp'",
    ]


def test_a_study_that_has_such_a_setting_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was created by an earlier version, and its user cannot change it any more."""
    storage = MemoryStorage()
    with monkeypatch.context() as patched:
        patched.setattr(named_methods, "check_effect", lambda parts, given: None)
        create("mobster-joint:separate_noise=true", epochs=True, storage=storage)
    again = scrimp.load_study("s", storage=storage)
    assert again.ask().params
    same = create(
        "mobster-joint:separate_noise=true", epochs=True, storage=storage, load_if_exists=True
    )
    assert len(same.trials) == 1, "the program that created it runs again"


GUESSED = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1, prior=(0.3, "high")))


@pytest.mark.parametrize(
    ("method", "epochs", "ignored"),
    [
        ("random", False, True),
        ("sobol", False, True),
        ("grid", False, True),
        ("asha", True, True),
        ("dehb", True, True),
        ("gp", False, False),
        ("tpe", False, False),
        ("nsga2", False, False),
        ("rgpe", False, False),
        ("bohb", True, False),
        ("freeze-thaw", True, False),
    ],
)
def test_a_guess_of_which_a_method_takes_no_notice_is_warned_about(
    method: str, epochs: bool, ignored: bool, recwarn: pytest.WarningsRecorder
) -> None:
    create(method, epochs=epochs, space=GUESSED)
    said = [str(warning.message) for warning in recwarn]
    expected = f"the prior of 'y' has no effect: method '{method}' takes no notice of guesses"
    assert [expected in text for text in said] == [True] * ignored
    first = scrimp.create_study(
        "other",
        GUESSED,
        method=method,
        budget=EPOCHS if epochs else None,
        storage="memory://",
        seed=3,
    ).ask()
    assert (first.params["y"] == 0.3) is not ignored


def test_methods_that_learn_from_past_studies_begin_with_these(
    recwarn: pytest.WarningsRecorder,
) -> None:
    storage = MemoryStorage()
    past = scrimp.create_study("past", GUESSED, method="gp", storage=storage, seed=0)
    for number in range(6):
        past.tell(past.ask(), float(number))
    create("rgpe", space=GUESSED, storage=storage, learn_from=["past"])
    (said,) = [str(warning.message) for warning in recwarn]
    assert "method 'rgpe' takes no notice of guesses" in said


def test_a_hint_that_several_metrics_leave_out_is_warned_about() -> None:
    storage = MemoryStorage()
    past = scrimp.create_study("past", SPACE, method="random", storage=storage, seed=0)
    for number in range(6):
        past.tell(past.ask(), float(number))
    given: dict[str, Any] = {"epochs": True, "storage": storage, "learn_from": ["past"]}
    create("freeze-thaw:hint=true", **given)
    scrimp.delete_study("s", storage=storage)
    metrics = {"value": "minimize", "b": "minimize"}
    with pytest.warns(UserWarning, match="'hint' has no effect: with several metrics no curve"):
        create("freeze-thaw:hint=true", metrics=metrics, **given)


@pytest.mark.parametrize(
    ("method", "more", "words"),
    [
        ("portfolio:samples=9", {}, "setting 'samples' has no effect: the portfolio alone decides"),
        ("portfolio:fantasies=4", {}, "setting 'fantasies' has no effect: the portfolio alone"),
        ("portfolio:refit_share=0", {}, "while past studies have a configuration left; leave the"),
        ("portfolio", {"cost": "seconds"}, "changes no decision while past studies have a config"),
        ("portfolio:values=observed", {}, ""),
        ("rgpe:samples=9,fantasies=4", {}, ""),
    ],
)
def test_what_a_portfolio_does_not_look_at_is_warned_about(
    method: str, more: dict[str, Any], words: str, recwarn: pytest.WarningsRecorder
) -> None:
    storage = MemoryStorage()
    past = scrimp.create_study("past", SPACE, method="random", storage=storage, seed=0)
    for number in range(6):
        past.tell(past.ask(), float(number))
    create(method, storage=storage, learn_from=["past"], **more)
    said = [str(warning.message) for warning in recwarn]
    assert [words in text for text in said] == [True] * bool(words)


def test_budgets_of_one_level_are_warned_about(recwarn: pytest.WarningsRecorder) -> None:
    full = scrimp.Budget("epoch", 9, 9)
    create("asha", budget=full)
    # what did not choose a method for its rungs has none of them in vain
    create("auto", budget=full)
    create("gp", budget=full)
    create("asha", epochs=True)
    (said,) = [str(warning.message) for warning in recwarn]
    assert "method 'asha' stops trials early, and this budget begins at its maximum" in said
    assert "scrimp.Budget('epoch', 1, 9)" in said


def test_a_method_for_past_studies_without_any_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    create("rgpe")
    assert "method 'rgpe' learns from past studies, and this study has none" in caplog.text
    with pytest.warns(UserWarning, match="setting 'hint' has no effect"):
        create("freeze-thaw:hint=true", epochs=True)


def test_values_may_stay_as_they_are() -> None:
    create("tst-r:normalise=none")
    with pytest.raises(MethodError, match="normalise is 'log'; it must be one of none, z-score"):
        create("tst-r:normalise=log")
