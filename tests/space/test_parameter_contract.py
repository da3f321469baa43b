"""What all parameters carry: conditions, defaults and guesses."""

from scrimp.space.parameter import Float, Int


def test_conditions_and_priors_have_a_normal_form():
    assert Float(0, 1, when={"optimizer": "sgd"}).when == {"optimizer": ("sgd",)}
    assert Float(0, 1, when={"layers": range(2, 4)}).when == {"layers": (2, 3)}
    assert Float(0, 1, when={"o": {"c", "a", "b"}}).when == {"o": ("a", "b", "c")}
    assert Float(0, 1, prior=(1, "high")).prior == (1.0, 0.75)
    assert Float(0, 1, prior=[0.5, 0.1]).prior == (0.5, 0.1)
    assert Int(1, 8, default=3.0).default == 3
