"""An explanation: the summary first, the rest folded, everything escaped."""

from scrimp.display.explanation import DecisionReason, Explanation

DECISION = DecisionReason(
    3, "a new one <b>", 1.0, True, "", 2, 2, "", {}, lines=("It was drawn at random.",)
)
TOLD = Explanation(
    7,
    "completed",
    {"lr": 0.1},
    0.5,
    1.0,
    "Trial 7: <i>",
    "asha",
    "auto",
    (DECISION,),
    None,
    ("Why.",),
)


def test_the_text_is_the_summary_and_details_have_all() -> None:
    assert str(TOLD) == TOLD.text == "Trial 7: <i>\n  lr=0.1\nWhy."
    assert TOLD.details.splitlines()[3:] == [
        "Method: asha (auto)",
        "Decision 3: a new one <b>",
        "  It was drawn at random.",
    ]
    assert TOLD.to_json()["summary"] == ("Why.",)


def test_a_notebook_folds_the_decisions() -> None:
    page = TOLD._repr_html_()
    assert "<details>" in page and "Trial 7: &lt;i&gt;" in page and "a new one &lt;b&gt;" in page
    assert "<i>" not in page
