from scrimp.gp.columns import Column


def test_kinds():
    assert Column().kind == "continuous"
    assert Column((0.0, 0.5, 1.0)).kind == "discrete"
    assert Column((0.0, 1.0), ordered=False).kind == "categorical"


def test_columns_are_values():
    assert Column((0.0, 1.0)) == Column((0.0, 1.0)) != Column((0.0, 1.0), ordered=False)
    assert len({Column(), Column(), Column((0.0,))}) == 2
