"""Settings: rules beside their fields, nested parts written flat, errors with value, rule and
remedy."""

from dataclasses import dataclass, fields

import pytest

from scrimp.errors import MethodError
from scrimp.plugins.settings import (
    AnyOf,
    above,
    at_least,
    at_most,
    below,
    between,
    build,
    check_effect,
    check_settings,
    choices,
    flat_settings,
    handed_in,
    idle_in_study,
    is_visible,
    nested_settings,
    other_than,
    setting,
    settings_of,
)
from scrimp.plugins.study_rules import WITH_PAST, WITHOUT_LIST, StudyFacts


@dataclass(frozen=True)
class Model:
    kernel: str = setting("rbf", choices("rbf", "matern"))
    size: int | None = setting(3, at_least(1), "a model needs a row")
    cap: bool = setting(True, paper=True)
    scales: tuple[float, ...] = ()
    dense: bool = handed_in(False)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True)
class Search:
    model: Model = nested_settings(Model("matern", dense=True), without=("scales",))
    share: float = setting(0.5, above(0) & below(1))


@dataclass(frozen=True)
class Method:
    search: Search = nested_settings(Search(share=0.25))
    draws: int = 9


def test_flat_names_find_their_nested_home() -> None:
    built = build(Method, {"kernel": "rbf", "draws": "4", "share": 0.75, "unknown": 1})
    assert built == Method(Search(Model("rbf", dense=True), 0.75), 4)
    assert build(Method, {}) == Method()
    # what is given of one part leaves the presets of the others alone
    assert build(Method, {"size": 7}).search == Search(Model("matern", 7, dense=True), 0.25)


def test_every_setting_is_listed_once_by_its_flat_name() -> None:
    assert list(settings_of(Method)) == ["kernel", "size", "cap", "share", "draws"]
    hidden = [name for name, item in settings_of(Method).items() if not is_visible(item)]
    assert hidden == ["cap"]
    values = {"kernel": "matern", "size": 3, "cap": True, "scales": (), "share": 0.25, "draws": 9}
    assert flat_settings(Method()) == values


def test_what_is_handed_in_or_has_no_meaning_cannot_be_given() -> None:
    assert build(Model, {"dense": True}) == Model()
    assert build(Method, {"scales": (1.0,)}) == Method()
    assert build(Model, {"scales": [1, 2]}) == Model(scales=(1.0, 2.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": "sine"}, "kernel is 'sine'; it must be one of rbf, matern"),
        ({"size": 0}, "size is 0; it must be at least 1, or none: a model needs a row"),
        (
            {"size": "many"},
            "setting 'size' is 'many'; it must be a whole number, at least 1, or none",
        ),
        ({"cap": "perhaps"}, "setting 'cap' is 'perhaps'; it must be true or false"),
    ],
)
def test_errors_have_value_rule_and_remedy(given: dict[str, object], message: str) -> None:
    with pytest.raises(MethodError, match=f"^{message}"):
        build(Method, given)


def test_none_is_left_to_the_type() -> None:
    assert build(Method, {"size": None}).search.model.size is None
    with pytest.raises(MethodError, match="'kernel' is none"):
        build(Method, {"kernel": None})


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (at_least(1), [1, 2.5], [0, float("nan")]),
        (above(1), [1.1], [1, float("nan")]),
        (at_most(1), [1, -3], [1.1]),
        (below(1), [0.9], [1]),
        (between(0, 1), [0, 1, 0.5], [-0.1, 1.1, float("nan")]),
        (above(0) & at_most(1), [0.1, 1], [0, 1.1]),
        (choices("a", "b"), ["a"], ["c", 3]),
    ],
)
def test_rules(rule: object, good: list[object], bad: list[object]) -> None:
    assert all(rule.holds(value) for value in good)  # type: ignore[attr-defined]
    assert not any(rule.holds(value) for value in bad)  # type: ignore[attr-defined]


def test_a_plain_dataclass_has_settings_too() -> None:
    """Fields of an author's class need no declaration."""

    @dataclass(frozen=True)
    class Mine:
        temperature: float = 1.0

    assert build(Mine, {"temperature": "0.5"}) == Mine(0.5)
    assert settings_of(Mine) == {item.name: item for item in fields(Mine)}


# --- settings without effect ----------------------------------------------------------------------


@dataclass(frozen=True)
class Rungs:
    increment: float | None = None
    top: bool = False
    factor: float = setting(3.0, only_with=AnyOf((("increment", (None,)), ("top", (True,)))))
    mixing: float | None = setting(None, above(0))
    spread: float = setting(1.0, only_with=(("mixing", above(0)), WITHOUT_LIST))
    kind: str = "tree"
    steps: int = setting(1, only_with=("kind", other_than("tree")))
    rows: int = 9
    elsewhere: int = setting(1, only_with=("unknown", (1,)))


@dataclass(frozen=True)
class Racing:
    rungs: Rungs = nested_settings(Rungs(), only_with={"rows": WITH_PAST, "steps": ("fits", (2,))})
    fits: int = 2


@pytest.mark.parametrize(
    ("part", "given", "message"),
    [
        (
            Rungs(increment=2.0),
            "factor",
            "setting 'factor' has no effect with increment=2.0 and top=false: leave it out, or use"
            " increment=none or top=true",
        ),
        (Rungs(), "steps", "with kind='tree': leave it out, or use kind other than 'tree'"),
        (Racing(), "steps", "with kind='tree': leave it out"),
        (Racing(Rungs(kind="net"), fits=1), "steps", "with fits=1: leave it out, or use fits=2"),
    ],
)
def test_what_has_no_effect_beside_others_is_refused(
    part: Rungs | Racing, given: str, message: str
) -> None:
    check_effect([part], ["rows", "unknown"])
    with pytest.raises(MethodError) as caught:
        check_effect([part], [given])
    assert message in str(caught.value)


def test_what_has_an_effect_is_taken() -> None:
    check_effect([Rungs()], ["factor", "spread", "elsewhere"])
    check_effect([Rungs(increment=2.0, top=True, mixing=0.5)], ["factor", "spread"])
    check_effect([Racing(Rungs(kind="net"))], ["steps"])


def test_what_has_no_effect_in_a_study_is_named_with_its_rule() -> None:
    listed = StudyFacts(listed=True)
    assert list(idle_in_study([Rungs()], ["spread", "rows"], listed)) == [("spread", WITHOUT_LIST)]
    assert list(idle_in_study([Racing()], ["rows", "unknown"], listed)) == [("rows", WITH_PAST)]
    assert not list(idle_in_study([Racing()], ["rows"], StudyFacts(past=True)))
    # what a method says about a part is not said of the part elsewhere
    assert not settings_of(Rungs)["rows"].metadata.get("only_with")
