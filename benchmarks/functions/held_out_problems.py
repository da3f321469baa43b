"""Problems that had no part in any choice of scrimp's: the formulas of other libraries, and training
on the data sets of scikit-learn.

Functions follow the test problems of BoTorch, pymoo, Nevergrad and BBOB ("bbob-mixint" for rounded
ones), Func2C the paper of CoCaBO (Ru et al., Bayesian optimisation over multiple continuous and
categorical inputs, 2020), the models and data sets Bayesmark. A minimum that its library puts at the
centre of the box is moved to a place that the name of the problem draws, as Nevergrad moves it.
Rosenbrock's valley, Rastrigin's waves, steps, spheres and the attractive sector have relatives in
`hard_functions`, in other boxes and with other constants.
``Formula.optimum`` is a lower bound: regrets serve ranks only.

Needs NumPy and scikit-learn alone, so that a peer's own environment can import it.
"""

import math
import warnings
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from benchmarks.peers.function_loop import load_formulas

warnings.filterwarnings("ignore")

Vector = np.ndarray
Loss = Callable[[Vector], float]
Parameters = tuple[dict[str, Any], ...]
FORMULA = load_formulas()
CLASSES = ("smooth", "steep", "rugged", "mixed", "scikit-learn")
TRIALS, TRAINING_TRIALS = 60, 30


def number(name: str, low: float, high: float, *, log: bool = False) -> dict[str, Any]:
    return {"name": name, "type": "float", "low": low, "high": high, "log": log}


def whole(name: str, low: int, high: int, *, log: bool = False) -> dict[str, Any]:
    return {"name": name, "type": "int", "low": low, "high": high, "log": log}


def choice(name: str, *choices: Any) -> dict[str, Any]:
    return {"name": name, "type": "choice", "choices": list(choices)}


def box(dimension: int, low: float, high: float) -> Parameters:
    return tuple(number(f"x{place + 1}", low, high) for place in range(dimension))


def integers(dimension: int, low: int, high: int, floats: int) -> Parameters:
    """Parameters over one range; all but the last ``floats`` of them are integers."""
    return tuple(
        (whole if place < dimension - floats else number)(f"x{place + 1}", low, high)
        for place in range(dimension)
    )


def drawn_point(name: str, dimension: int, width: float) -> Vector:
    """The place of a moved minimum, in [-width, width]^d; the name draws it."""
    return np.random.default_rng(zlib.crc32(name.encode())).uniform(-width, width, dimension)


def turned(name: str, dimension: int) -> Vector:
    """A random rotation (d, d) that the name draws."""
    rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    return np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]


# --- formulas -------------------------------------------------------------------------------------


def six_hump_camel(x: Vector) -> float:
    a, b = x
    return float((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)


def beale(x: Vector) -> float:
    a, b = x
    return float((1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2)


def goldstein_price(x: Vector) -> float:
    a, b = x
    first = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    second = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return float((1 + (a + b + 1) ** 2 * first) * (30 + (2 * a - 3 * b) ** 2 * second))


def hartmann4(x: Vector) -> float:
    inner = (FORMULA.HARTMANN6_A[:, :4] * (x - FORMULA.HARTMANN6_P[:, :4]) ** 2).sum(axis=1)
    return float((1.1 - FORMULA.HARTMANN_WEIGHTS @ np.exp(-inner)) / 0.839)


def rosenbrock(x: Vector) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def dixon_price(x: Vector) -> float:
    places = np.arange(2, len(x) + 1)
    return float((x[0] - 1) ** 2 + np.sum(places * (2 * x[1:] ** 2 - x[:-1]) ** 2))


def powell(x: Vector) -> float:
    a, b, c, d = x[0::4], x[1::4], x[2::4], x[3::4]
    four = (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return float(np.sum(four))


def zakharov(x: Vector) -> float:
    slope = np.sum(0.5 * np.arange(1, len(x) + 1) * x)
    return float(np.sum(x**2) + slope**2 + slope**4)


def corner_peak(x: Vector) -> float:
    return float((1 + np.mean(np.tanh(x)) + 1e-9) ** (-len(x) - 1))


def sector(name: str, best: Vector) -> Loss:
    """The attractive sector of BBOB: a hundred times steeper on one side of every coordinate."""
    dimension = len(best)
    turn = turned(name, dimension)
    scales = 10 ** np.linspace(0, 0.5, dimension)

    def loss(x: Vector) -> float:
        z = turn @ (scales * (turn.T @ (x - best)))
        return float(np.sum((np.where(z * best > 0, 100.0, 1.0) * z) ** 2) ** 0.9)

    return loss


def rastrigin(x: Vector) -> float:
    return float(10 * len(x) + np.sum(x**2 - 10 * np.cos(2 * math.pi * x)))


def griewank(x: Vector) -> float:
    waves = np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1))))
    return float(1 + np.sum(x**2) / 4000 - waves)


def drop_wave(x: Vector) -> float:
    squares = np.sum(x**2)
    return float(-(1 + math.cos(12 * math.sqrt(squares))) / (0.5 * squares + 2))


def eggholder(x: Vector) -> float:
    a, b = x
    first = -(b + 47) * math.sin(math.sqrt(abs(b + a / 2 + 47)))
    return float(first - a * math.sin(math.sqrt(abs(a - (b + 47)))))


SHEKEL_WIDTHS = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10
SHEKEL_PLACES = np.array(
    [[4, 1, 8, 6, 3, 2, 5, 8, 6, 7], [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6]] * 2, dtype=float
)


def shekel(x: Vector) -> float:
    return float(-np.sum(1 / (((x[:, None] - SHEKEL_PLACES) ** 2).sum(axis=0) + SHEKEL_WIDTHS)))


def schwefel(x: Vector) -> float:
    return float(418.9828872724339 * len(x) - np.sum(x * np.sin(np.sqrt(np.abs(x)))))


def michalewicz(x: Vector) -> float:
    places = np.arange(1, len(x) + 1)
    return float(-np.sum(np.sin(x) * np.sin(places * x**2 / math.pi) ** 20))


def lunacek(x: Vector) -> float:
    """Two wide basins with the waves of Rastrigin; the wider one does not hold the minimum."""
    dimension, first = len(x), 2.5
    s = 1 - 1 / (2 * math.sqrt(dimension + 20) - 8.2)
    second = -math.sqrt((first**2 - 1) / s)
    z = x + first
    basins = min(np.sum((z - first) ** 2), dimension + s * np.sum((z - second) ** 2))
    return float(basins + 10 * np.sum(1 - np.cos(2 * math.pi * (z - first))))


def step_ellipsoid(name: str, best: Vector) -> Loss:
    """The step ellipsoid of BBOB: plateaus of two sizes under a rotation."""
    dimension = len(best)
    turn = turned(name, dimension)
    scales, weights = 10 ** np.linspace(0, 0.5, dimension), 10 ** np.linspace(0, 2, dimension)

    def loss(x: Vector) -> float:
        z = scales * (turn @ (x - best))
        steps = np.where(np.abs(z) > 0.5, np.floor(0.5 + z), np.floor(0.5 + 10 * z) / 10)
        return float(0.1 * max(abs(z[0]) / 1e4, np.sum(weights * (turn.T @ steps) ** 2)))

    return loss


def hm(x: Vector) -> float:
    near = np.where(x == 0, 1.0, x)
    return float(np.sum(np.where(x == 0, 0.0, x**2 * (1.1 + np.cos(1 / near)))))


def ackley(x: Vector) -> float:
    distance = -20 * math.exp(-0.2 * math.sqrt(np.mean(x**2)))
    return float(distance - math.exp(np.mean(np.cos(2 * math.pi * x))) + 20 + math.e)


def low_autocorrelation(x: Vector) -> float:
    """Labs of BoTorch: the negative merit factor of a sequence of signs."""
    signs = np.where(x > 0.5, 1.0, -1.0)
    count = len(signs)
    energy = sum(float(signs[:-lag] @ signs[lag:]) ** 2 for lag in range(1, count))
    return -(count**2) / (2 * energy)


def pressure_vessel(config: Mapping[str, Any]) -> float:
    """The vessel of pymoo and BoTorch: cost, and a penalty on what it violates."""
    shell, head = 0.0625 * config["x1"], 0.0625 * config["x2"]
    radius, length = config["x3"], config["x4"]
    volume = math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3
    violated = (
        max(0.0193 * radius - shell, 0.0)
        + max(0.00954 * radius - head, 0.0)
        + max(1 - volume / 1296000, 0.0)
    )
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    return float(cost + 1e5 * violated)


def two_choices(config: Mapping[str, Any]) -> float:
    """Func2C: the choices name the functions that are added."""
    x = 2 * np.array([config["x1"], config["x2"]])
    parts = {"valley": rosenbrock(x) / 300, "camel": six_hump_camel(x) / 10, "beale": beale(x) / 50}
    return parts[config["first"]] + parts.get(config["second"], 0.0)


def unlike(config: Mapping[str, Any], leading: bool) -> float:
    """One-max and leading ones of Nevergrad over choices: parameters that are not (all, up to
    there) at a drawn choice."""
    wanted = np.random.default_rng(len(config)).integers(3, size=len(config))
    right = np.array([config[f"x{k}"] == "abc"[w] for k, w in enumerate(wanted)])
    return float(len(right) - (np.cumprod(right).sum() if leading else right.sum()))


# --- scikit-learn ---------------------------------------------------------------------------------


@cache
def data_of(name: str) -> tuple[Vector, Vector]:
    """Scaled inputs and targets of one of scikit-learn's data sets, at most 500 rows."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:500]
    return StandardScaler().fit_transform(x[rows]), y[rows]


def cross_validated(model: Any, data: str, scoring: str) -> float:
    """Minus the score, on average over three folds."""
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    folds = (KFold if data == "diabetes" else StratifiedKFold)(3, shuffle=True, random_state=0)
    x, y = data_of(data)
    return float(-cross_val_score(model, x, y, scoring=scoring, cv=folds).mean())


TREE = (
    whole("max_depth", 1, 15),
    number("min_samples_split", 0.01, 0.99),
    number("min_samples_leaf", 0.01, 0.49),
    number("max_features", 0.01, 0.99),
    number("min_impurity_decrease", 0.0, 0.5),
)
FOREST = (
    whole("max_depth", 1, 15),
    number("max_features", 0.05, 1.0),
    number("min_samples_split", 0.01, 0.5, log=True),
    number("min_samples_leaf", 0.002, 0.3, log=True),
    choice("bootstrap", True, False),
)

ACCURACY, LOG_LOSS, SQUARES = "accuracy", "neg_log_loss", "neg_mean_squared_error"

MODELS: dict[str, tuple[str, dict[str, Any], str, str, Parameters]] = {
    "k-nearest": (
        "neighbors.KNeighborsClassifier", {}, "digits", ACCURACY,
        (whole("n_neighbors", 1, 40), number("p", 1, 5), choice("weights", "uniform", "distance")),
    ),
    "svm": (
        "svm.SVC", {"max_iter": 20000}, "breast_cancer", ACCURACY,
        (number("C", 1e-3, 1e3, log=True), number("gamma", 1e-5, 10, log=True),
         choice("kernel", "rbf", "poly", "sigmoid"), number("tol", 1e-5, 1e-1, log=True)),
    ),
    "logistic": (
        "linear_model.LogisticRegression", {"solver": "saga", "max_iter": 50}, "digits", LOG_LOSS,
        (number("C", 1e-4, 1e4, log=True), number("l1_ratio", 0, 1),
         number("tol", 1e-5, 1e-1, log=True), choice("fit_intercept", True, False)),
    ),
    "tree": (
        "tree.DecisionTreeClassifier", {"random_state": 0}, "wine", LOG_LOSS,
        (*TREE, choice("criterion", "gini", "entropy")),
    ),
    "random-forest": (
        "ensemble.RandomForestClassifier", {"random_state": 0, "n_estimators": 15},
        "breast_cancer", LOG_LOSS, FOREST,
    ),
    "extra-trees": (
        "ensemble.ExtraTreesRegressor", {"random_state": 0, "n_estimators": 15},
        "diabetes", SQUARES, FOREST,
    ),
    "gradient-boosting": (
        "ensemble.GradientBoostingRegressor", {"random_state": 0}, "diabetes", SQUARES,
        (number("learning_rate", 1e-3, 1, log=True), whole("n_estimators", 5, 60, log=True),
         whole("max_depth", 1, 6), number("subsample", 0.3, 1), number("max_features", 0.1, 1),
         choice("loss", "squared_error", "huber", "absolute_error")),
    ),
    "mlp": (
        "neural_network.MLPClassifier", {"random_state": 0, "max_iter": 12}, "digits", LOG_LOSS,
        (whole("hidden_layer_sizes", 8, 100, log=True), number("alpha", 1e-5, 10, log=True),
         whole("batch_size", 16, 250, log=True), number("learning_rate_init", 1e-5, 1e-1, log=True),
         number("beta_1", 0.5, 0.99), choice("activation", "relu", "tanh", "logistic")),
    ),
    "ada-boost": (
        "ensemble.AdaBoostClassifier", {"random_state": 0}, "wine", LOG_LOSS,
        (whole("n_estimators", 5, 40, log=True), number("learning_rate", 1e-4, 10, log=True)),
    ),
}  # fmt: skip
"""Class, its fixed settings, data set, score and parameters."""


def training_problem(name: str) -> tuple[Parameters, Callable[[Mapping[str, Any]], float]]:
    """Space and loss of one model: cross-validation over three folds."""
    place, fixed, data, scoring, parameters = MODELS[name]

    def evaluate(config: Mapping[str, Any]) -> float:
        from importlib import import_module

        module, kind = place.split(".")
        make = getattr(import_module(f"sklearn.{module}"), kind)
        return cross_validated(make(**fixed, **config), data, scoring)

    return parameters, evaluate


# --- all problems ---------------------------------------------------------------------------------


def continuous() -> dict[str, tuple[Parameters, Loss]]:
    """Functions of vectors, with their spaces."""
    wide = 4.0
    return {
        "smooth/six-hump-camel-2": (box(2, -3, 3), six_hump_camel),
        "smooth/hartmann-4": (box(4, 0, 1), hartmann4),
        "smooth/corner-peak-5": (box(5, -1, 1), corner_peak),
        "smooth/cosine-8": moved("cosine-8", box(8, -1, 1), 0.8, cosine),
        "smooth/zakharov-10": moved("zakharov-10", box(10, -10, 10), 8, zakharov),
        "smooth/sphere-20": moved("sphere-20", box(20, -5, 5), wide, lambda x: float(x @ x)),
        "steep/goldstein-price-2": (box(2, -2, 2), goldstein_price),
        "steep/beale-2": (box(2, -4.5, 4.5), beale),
        "steep/dixon-price-5": (box(5, -10, 10), dixon_price),
        "steep/sector-5": (box(5, -5, 5), sector("sector-5", drawn_point("sector-5", 5, wide))),
        "steep/rosenbrock-6": (box(6, -2.048, 2.048), rosenbrock),
        "steep/discus-6": moved("discus-6", box(6, -5, 5), wide, discus),
        "steep/cigar-8": moved("cigar-8", box(8, -5, 5), wide, cigar),
        "steep/sector-10": (box(10, -5, 5), sector("sector-10", drawn_point("sector-10", 10, wide))),
        "steep/powell-12": moved("powell-12", box(12, -4, 5), 3, powell),
        "steep/rosenbrock-15": (box(15, -2.048, 2.048), rosenbrock),
        "rugged/drop-wave-2": moved("drop-wave-2", box(2, -5.12, 5.12), wide, drop_wave),
        "rugged/eggholder-2": (box(2, -512, 512), eggholder),
        "rugged/shekel-4": (box(4, 0, 10), shekel),
        "rugged/schwefel-4": (box(4, -500, 500), schwefel),
        "rugged/michalewicz-5": (box(5, 0, math.pi), michalewicz),
        "rugged/rastrigin-5": moved("rastrigin-5", box(5, -5, 5), wide, rastrigin),
        "rugged/griewank-6": moved("griewank-6", box(6, -60, 60), 50, griewank),
        "rugged/step-ellipsoid-6": (
            box(6, -5, 5), step_ellipsoid("step-ellipsoid-6", drawn_point("step-ellipsoid-6", 6, 4)),
        ),
        "rugged/lunacek-8": moved("lunacek-8", box(8, -5, 5), 2, lunacek),
        "rugged/hm-10": moved("hm-10", box(10, -5, 5), wide, hm),
        "rugged/rastrigin-12": moved("rastrigin-12", box(12, -5, 5), wide, rastrigin),
        "mixed/rosenbrock-5": (integers(5, -5, 10, floats=2), rosenbrock),
        "mixed/griewank-6": on_grid("griewank-6", integers(6, -60, 60, floats=2), 50, griewank),
        "mixed/rastrigin-10": on_grid("rastrigin-10", integers(10, -5, 5, floats=4), 4, rastrigin),
        "mixed/labs-16": (tuple(whole(f"x{k + 1}", 0, 1) for k in range(16)), low_autocorrelation),
        "mixed/ackley-13": (
            (*(whole(f"x{k}", 0, 1) for k in range(1, 11)),
             *(number(f"x{k}", 0, 1) for k in range(11, 14))), ackley,
        ),
    }  # fmt: skip


def cosine(x: Vector) -> float:
    return float(np.sum(x**2) - 0.1 * np.sum(np.cos(5 * math.pi * x)))


def discus(x: Vector) -> float:
    return float(1e6 * x[0] ** 2 + np.sum(x[1:] ** 2))


def cigar(x: Vector) -> float:
    return float(x[0] ** 2 + 1e6 * np.sum(x[1:] ** 2))


def moved(name: str, space: Parameters, width: float, loss: Loss) -> tuple[Parameters, Loss]:
    """Move the minimum of a function from 0 to a drawn point."""
    best = drawn_point(name, len(space), width)
    return space, lambda x: loss(x - best)


def on_grid(name: str, space: Parameters, width: float, loss: Loss) -> tuple[Parameters, Loss]:
    """Move the minimum of a function to a drawn point whose integers are whole."""
    best = drawn_point(name, len(space), width)
    whole_ones = [parameter["type"] == "int" for parameter in space]
    best = np.where(whole_ones, np.round(best), best)
    return space, lambda x: loss(x - best)


def of_configs() -> dict[str, tuple[Parameters, Callable[[Mapping[str, Any]], float]]]:
    """Functions of configurations, with their spaces."""
    vessel = (whole("x1", 1, 99), whole("x2", 1, 99), number("x3", 10, 200), number("x4", 10, 200))
    two = (
        choice("first", "valley", "camel", "beale"),
        choice("second", "valley", "camel", "beale", "none", "empty"),
        *box(2, -1, 1),
    )
    ten, eight = (tuple(choice(f"x{k}", *"abc") for k in range(count)) for count in (10, 8))
    return {
        "mixed/pressure-vessel-4": (vessel, pressure_vessel),
        "mixed/func2c-4": (two, two_choices),
        "mixed/one-max-10": (ten, lambda config: unlike(config, leading=False)),
        "mixed/leading-ones-8": (eight, lambda config: unlike(config, leading=True)),
        **{f"scikit-learn/{name}": training_problem(name) for name in MODELS},
    }


def problems() -> dict[str, Any]:
    """All problems by name."""
    lower = -1e3
    found = {
        name: FORMULA.Formula(name, space, lower, vector_loss(space, loss))
        for name, (space, loss) in continuous().items()
    }
    for name, (space, loss) in of_configs().items():
        found[name] = FORMULA.Formula(name, space, lower, loss)
    return found


def vector_loss(space: Parameters, loss: Loss) -> Callable[[Mapping[str, Any]], float]:
    names = [parameter["name"] for parameter in space]
    return lambda config: loss(np.array([float(config[name]) for name in names]))


FORMULAS = problems()


def class_of(name: str) -> str:
    """The class of a problem: what stands before the slash."""
    return name.split("/")[0]


def trials_of(name: str) -> int:
    """The number of trials of a run."""
    return TRAINING_TRIALS if class_of(name) == "scikit-learn" else TRIALS
