"""Define small problems of real training, each trained one unit at a time.

    problem = PROBLEMS["mlp"]
    state = problem.start({"learning_rate": 1e-3, ...}, seed=0)
    state, loss = problem.train(state)         # one unit: an epoch, some boosting rounds or steps

The loss is that of the validation data. Spaces are continuous, mixed and, in three of the five
problems, conditional, and are described as in benchmark tables. A state can be pickled and is the
checkpoint. scikit-learn and torch are imported where they are used. The text is Python's standard
library.
"""

import math
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Config = dict[str, Any]
State = dict[str, Any]
DIVERGED = 1e6


@dataclass(frozen=True)
class Problem:
    """A model, its space and its training.

    ``start`` returns an untrained state; ``train`` advances it by one of ``units`` and returns the
    validation loss.
    """

    space: list[dict[str, Any]]
    start: Callable[[Config, int], State]
    train: Callable[[State], tuple[State, float]]
    units: int = 27


def number(
    name: str, low: float, high: float, log: bool = False, kind: str = "float", **when: Any
) -> dict[str, Any]:
    """Describe a numeric parameter."""
    return {"name": name, "type": kind, "low": low, "high": high, "log": log} | (
        {"when": when} if when else {}
    )


def choice(name: str, *choices: Any, ordinal: bool = False) -> dict[str, Any]:
    """Describe a choice."""
    return {"name": name, "type": "ordinal" if ordinal else "choice", "choices": list(choices)}


def capped(loss: float) -> float:
    """Return a large finite loss for a run that diverged, so that every optimizer accepts it."""
    return min(float(loss), DIVERGED) if math.isfinite(loss) else DIVERGED


# -- scikit-learn ---------------------------------------------------------------------------------


@cache
def digits() -> Any:
    """Return training and validation images and labels of handwritten digits."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    return train_test_split(images / 16.0, labels, test_size=0.4, random_state=0, stratify=labels)


def start_mlp(config: Config, seed: int) -> State:
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        hidden_layer_sizes=(config["hidden"],) * config["layers"],
        activation=config["activation"],
        solver=config["solver"],
        momentum=config.get("momentum", 0.9),
        learning_rate_init=config["learning_rate"],
        alpha=config["weight_decay"],
        batch_size=config["batch_size"],
        random_state=seed,
    )
    return {"model": model}


def train_mlp(state: State) -> tuple[State, float]:
    import warnings

    from sklearn.metrics import log_loss

    train_x, valid_x, train_y, valid_y = digits()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            state["model"].partial_fit(train_x, train_y, classes=range(10))
            return state, capped(
                log_loss(valid_y, state["model"].predict_proba(valid_x), labels=range(10))
            )
        except ValueError:  # weights that are not finite
            return state, DIVERGED


def start_boosting(config: Config, seed: int) -> State:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        learning_rate=config["learning_rate"],
        max_leaf_nodes=config.get("leaves"),
        max_depth=config.get("depth"),
        min_samples_leaf=config["samples"],
        l2_regularization=config["l2"],
        max_features=config["features"],
        max_bins=config["bins"],
        early_stopping=False,
        warm_start=True,
        max_iter=0,
        random_state=seed,
    )
    return {"model": model}


def train_boosting(state: State) -> tuple[State, float]:
    from sklearn.metrics import log_loss

    train_x, valid_x, train_y, valid_y = digits()
    model = state["model"]
    model.set_params(max_iter=model.max_iter + 3).fit(train_x, train_y)
    return state, capped(log_loss(valid_y, model.predict_proba(valid_x), labels=range(10)))


# -- torch ----------------------------------------------------------------------------------------


def start_convnet(config: Config, seed: int) -> State:
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers: list[Any] = []
    channels = 1
    for _ in range(config["blocks"]):
        layers += [
            nn.Conv2d(channels, config["channels"], 3, padding=1),
            nn.BatchNorm2d(config["channels"]),
            nn.ReLU(),
        ]
        channels = config["channels"]
    head = [
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(config["dropout"]),
        nn.Linear(16 * channels, 10),
    ]
    model = nn.Sequential(*layers, *head)
    if config["optimizer"] == "sgd":
        settings = {"momentum": config["momentum"], "weight_decay": config["decay"]}
        optimizer: Any = torch.optim.SGD(model.parameters(), config["lr"], **settings)
    else:
        optimizer = torch.optim.AdamW(
            model.parameters(), config["lr"], weight_decay=config["decay"]
        )
    return {"model": model, "optimizer": optimizer, "config": config, "seed": seed, "unit": 0}


def train_convnet(state: State) -> tuple[State, float]:
    import torch
    from torch.nn.functional import cross_entropy

    train_x, valid_x, train_y, valid_y = (torch.as_tensor(part) for part in digits())
    images, config = train_x.float().reshape(-1, 1, 8, 8), state["config"]
    state["unit"] += 1
    order = torch.randperm(
        len(images), generator=torch.Generator().manual_seed(state["seed"] + 1000 * state["unit"])
    )
    state["model"].train()
    for rows in order.split(config["batch"]):
        picture = images[rows]
        if config["shift"]:
            picture = torch.roll(picture, (int(rows[0]) % 3 - 1, int(rows[-1]) % 3 - 1), (2, 3))
        state["optimizer"].zero_grad()
        cross_entropy(
            state["model"](picture), train_y[rows], label_smoothing=config["smoothing"]
        ).backward()
        state["optimizer"].step()
    state["model"].eval()
    with torch.no_grad():
        return state, capped(
            cross_entropy(state["model"](valid_x.float().reshape(-1, 1, 8, 8)), valid_y).item()
        )


@cache
def text() -> Any:
    """Return training and validation text: bytes of source code."""
    import torch

    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    data = b"".join(path.read_bytes() for path in files)[: 4 * 2**20]
    whole = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return whole[: len(whole) * 9 // 10], whole[len(whole) * 9 // 10 :]


@dataclass(frozen=True)
class Scale:
    """The size of a transformer's training.

    It has the bytes in a window, the steps in a unit, the validation windows, and the device.
    """

    window: int
    steps: int
    windows: int
    device: str = "cpu"


def transformer(config: Config, window: int) -> Any:
    """Return a decoder over bytes: embeddings, attention blocks, one linear output."""
    import torch
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width, heads = config["width"], config["heads"]
            self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(window, width)
            block = nn.TransformerEncoderLayer(
                width,
                heads,
                4 * width,
                config["dropout"],
                "gelu",
                batch_first=True,
                norm_first=True,
            )
            self.blocks = nn.TransformerEncoder(block, config["layers"], enable_nested_tensor=False)
            self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 256)
            for part in self.parameters():
                if part.dim() > 1:
                    nn.init.normal_(part, std=config["init"])

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
            deep = self.blocks(
                self.bytes(x) + self.places(torch.arange(x.shape[1], device=x.device)),
                mask,
                is_causal=True,
            )
            return self.out(self.norm(deep))

    return Decoder()


def start_transformer(scale: Scale) -> Callable[[Config, int], State]:
    def start(config: Config, seed: int) -> State:
        import torch

        torch.manual_seed(seed)
        model = transformer(config, scale.window).to(scale.device)
        betas = (0.9, config["beta2"])
        optimizer = torch.optim.AdamW(
            model.parameters(), config["lr"], betas, weight_decay=config["decay"]
        )
        return {
            "weights": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "config": config,
            "seed": seed,
            "unit": 0,
        }

    return start


def train_transformer(scale: Scale, units: int) -> Callable[[State], tuple[State, float]]:
    def train(state: State) -> tuple[State, float]:
        import torch
        from torch.nn.functional import cross_entropy

        config, unit = state["config"], state["unit"]
        model = transformer(config, scale.window).to(scale.device)
        model.load_state_dict(state["weights"])
        optimizer = torch.optim.AdamW(model.parameters(), config["lr"])
        optimizer.load_state_dict(state["optimizer"])
        learn, hold = text()

        def loss(source: Any, begins: Any) -> Any:
            windows = torch.stack(
                [source[begin : begin + scale.window + 1] for begin in begins.tolist()]
            ).long()
            windows = windows.to(scale.device, non_blocking=True)
            with torch.autocast(scale.device, torch.bfloat16, enabled=scale.device == "cuda"):
                out = model(windows[:, :-1])
            return cross_entropy(out.float().flatten(0, 1), windows[:, 1:].flatten())

        draw = torch.Generator().manual_seed(state["seed"] + 1000 * unit)
        model.train()
        for step in range(unit * scale.steps, (unit + 1) * scale.steps):
            done = step / (units * scale.steps)
            warm = min(1.0, (done + 1e-9) / max(config["warmup"], 1e-9))
            for group in optimizer.param_groups:
                group["lr"] = config["lr"] * warm * (1.0 - done)
            begins = torch.randint(
                len(learn) - scale.window - 1, (config["batch"],), generator=draw
            )
            optimizer.zero_grad()
            value = loss(learn, begins)
            if not torch.isfinite(value):
                break
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            places = torch.linspace(0, len(hold) - scale.window - 2, scale.windows).long()
            validation = capped(
                torch.stack([loss(hold, part) for part in places.split(64)]).mean().item()
            )
        after = {
            **state,
            "unit": unit + 1,
            "weights": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        return after, validation

    return train


def language(
    scale: Scale, widths: tuple[int, ...], batches: tuple[int, ...], layers: int
) -> Problem:
    """Return the problem of a transformer on text, with ten parameters."""
    units = 27
    space = [
        number("lr", 1e-5, 3e-2, log=True),
        choice("width", *widths, ordinal=True),
        number("layers", 1, layers, kind="int"),
        choice("heads", 1, 2, 4, 8, ordinal=True),
        number("dropout", 0.0, 0.4),
        number("decay", 1e-4, 1.0, log=True),
        choice("batch", *batches, ordinal=True),
        choice("beta2", 0.9, 0.95, 0.99, 0.999, ordinal=True),
        number("warmup", 0.0, 0.3),
        number("init", 0.005, 0.2, log=True),
    ]
    return Problem(space, start_transformer(scale), train_transformer(scale, units), units)


PROBLEMS = {
    "mlp": Problem(
        [
            number("learning_rate", 1e-4, 1e-1, log=True),
            number("hidden", 8, 128, log=True, kind="int"),
            number("layers", 1, 3, kind="int"),
            choice("activation", "relu", "tanh", "logistic"),
            choice("solver", "adam", "sgd"),
            number("momentum", 0.0, 0.99, solver="sgd"),
            number("weight_decay", 1e-7, 1e-1, log=True),
            choice("batch_size", 16, 32, 64, 128, 256, ordinal=True),
        ],
        start_mlp,
        train_mlp,
    ),
    "boosting": Problem(
        [
            number("learning_rate", 1e-3, 1.0, log=True),
            choice("growth", "leaves", "depth"),
            number("leaves", 3, 63, log=True, kind="int", growth="leaves"),
            number("depth", 1, 8, kind="int", growth="depth"),
            number("samples", 1, 100, log=True, kind="int"),
            number("l2", 1e-6, 10.0, log=True),
            number("features", 0.05, 1.0),
            choice("bins", 8, 16, 32, 64, 128, ordinal=True),
        ],
        start_boosting,
        train_boosting,
    ),
    "convnet": Problem(
        [
            number("lr", 1e-4, 1.0, log=True),
            choice("optimizer", "adamw", "sgd"),
            number("momentum", 0.0, 0.99, optimizer="sgd"),
            number("decay", 1e-6, 1.0, log=True),
            number("blocks", 1, 4, kind="int"),
            choice("channels", 4, 8, 16, 32, ordinal=True),
            number("dropout", 0.0, 0.6),
            number("smoothing", 0.0, 0.3),
            choice("batch", 16, 32, 64, 128, 256, ordinal=True),
            choice("shift", False, True),
        ],
        start_convnet,
        train_convnet,
    ),
    "transformer": language(
        Scale(window=48, steps=15, windows=64), (16, 32, 64), (4, 8, 16, 32), layers=4
    ),
    "gpt": language(Scale(256, 40, 512, "cuda"), (64, 128, 256, 384), (8, 16, 32, 64), layers=6),
}
"""Problems by name; ``gpt`` needs a GPU."""
