"""Tables for notebooks: every cell is escaped, every kind of parameter has its words."""

import scrimp
from scrimp.space.html_table import html_table, space_rows, words


def test_cells_and_captions_are_escaped() -> None:
    table = html_table(["<a>"], [["<b>", 0.1234567, None]], caption="x & y")
    assert (
        "&lt;a&gt;" in table
        and "&lt;b&gt;" in table
        and "0.12346" in table
        and "x &amp; y" in table
    )
    assert "<b>" not in table and len(words("x" * 500)) == 200


def test_long_tables_are_cut() -> None:
    table = html_table([], [[number] for number in range(250)])
    assert table.count("<tr>") == 200 and "and 50 more" in table and "<thead>" not in table


def test_every_kind_of_parameter() -> None:
    space = scrimp.Space(
        lr=scrimp.Float(1e-5, 0.1, log=True, default=0.01),
        layers=scrimp.Int(1, 9, step=2, prior=(3, 0.5)),
        width=scrimp.Ordinal([64, 128]),
        kind=scrimp.Categorical(["a", "b"]),
        momentum=scrimp.Float(0, 1, when={"kind": "b"}),
        batch=32,
    )
    assert space_rows(space.items()) == [
        ["lr", "Float", "1e-05 to 0.1", "log, default 0.01"],
        ["layers", "Int", "1 to 9", "step 2, prior 3"],
        ["width", "Ordinal", "64, 128", ""],
        ["kind", "Categorical", "a, b", ""],
        ["momentum", "Float", "0 to 1", "when kind is b"],
        ["batch", "Constant", "32", ""],
    ]
    assert "momentum" in space._repr_html_()
