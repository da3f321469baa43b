"""Define two problems of live training on which no rule of scrimp was chosen.

    recurrent      a recurrent network over bytes of Python's standard library
    noisy-labels   a residual network on handwritten digits, a fifth of the training labels wrong

Each has 13 parameters, mixed and conditional, and 27 units. `training_problems` describes what a
problem is. Both need torch.
"""

from functools import cache
from typing import Any

from benchmarks.training.training_problems import (
    PROBLEMS,
    Config,
    Problem,
    State,
    capped,
    choice,
    digits,
    number,
    text,
)

UNITS = 27
STEPS = 20
"""Steps of the recurrent network in a unit."""


def optimizer_of(model: Any, config: Config) -> Any:
    """Return the optimizer that a configuration names."""
    import torch

    parameters = list(model.parameters())
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(
            parameters, config["lr"], momentum=config["momentum"], weight_decay=config["decay"]
        )
    if config["optimizer"] == "rmsprop":
        return torch.optim.RMSprop(parameters, config["lr"], weight_decay=config["decay"])
    betas = (0.9, config["beta2"])
    return torch.optim.AdamW(parameters, config["lr"], betas, weight_decay=config["decay"])


def set_rate(optimizer: Any, config: Config, done: float) -> None:
    """Set the learning rate after the share ``done`` of the training."""
    rate = config["lr"] * min(1.0, (done + 1e-3) / max(config["warmup"], 1e-3))
    if config["schedule"] == "linear":
        rate *= 1.0 - done
    elif config["schedule"] == "steps":
        rate *= 0.1 ** int(3 * done)
    for group in optimizer.param_groups:
        group["lr"] = rate


OPTIMIZERS = [
    number("lr", 1e-5, 1.0, log=True),
    choice("optimizer", "adamw", "rmsprop", "sgd"),
    number("momentum", 0.0, 0.99, optimizer="sgd"),
    choice("beta2", 0.9, 0.99, 0.999, ordinal=True) | {"when": {"optimizer": "adamw"}},
    number("decay", 1e-6, 1.0, log=True),
    choice("schedule", "constant", "linear", "steps"),
    number("warmup", 0.0, 0.3),
]


# -- recurrent --------------------------------------------------------------------------------------


def recurrent(config: Config) -> Any:
    """Return the network: embedded bytes, recurrent cells, one linear output."""
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bytes = nn.Embedding(256, 24)
            cell = {"gru": nn.GRU, "lstm": nn.LSTM, "plain": nn.RNN}[config["cell"]]
            self.cells = cell(24, config["width"], config["layers"], batch_first=True)
            self.drop, self.out = nn.Dropout(config["dropout"]), nn.Linear(config["width"], 256)

        def forward(self, x: Any) -> Any:
            return self.out(self.drop(self.cells(self.bytes(x))[0]))

    return Network()


def start_recurrent(config: Config, seed: int) -> State:
    import torch

    torch.manual_seed(seed)
    model = recurrent(config)
    return {
        "weights": model.state_dict(),
        "optimizer": optimizer_of(model, config).state_dict(),
        "config": config,
        "seed": seed,
        "unit": 0,
    }


def train_recurrent(state: State) -> tuple[State, float]:
    import torch
    from torch.nn.functional import cross_entropy

    config, unit, window = state["config"], state["unit"], 32
    model = recurrent(config)
    model.load_state_dict(state["weights"])
    optimizer = optimizer_of(model, config)
    optimizer.load_state_dict(state["optimizer"])
    learn, hold = text()

    def loss(source: Any, begins: Any) -> Any:
        windows = torch.stack([source[b : b + window + 1] for b in begins.tolist()]).long()
        return cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())

    draw = torch.Generator().manual_seed(state["seed"] + 1000 * unit)
    model.train()
    for step in range(STEPS):
        set_rate(optimizer, config, (unit + step / STEPS) / UNITS)
        begins = torch.randint(len(learn) - window - 1, (config["batch"],), generator=draw)
        optimizer.zero_grad()
        value = loss(learn, begins)
        if not torch.isfinite(value):
            break
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
        optimizer.step()
    model.eval()
    with torch.no_grad():
        validation = loss(hold, torch.linspace(0, len(hold) - window - 2, 256).long()).item()
    after = {
        **state,
        "unit": unit + 1,
        "weights": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    return after, capped(validation)


# -- noisy labels -----------------------------------------------------------------------------------


@cache
def noisy_digits() -> Any:
    """Return the digits as tensors, a fifth of the training labels replaced at random."""
    import torch

    train_x, valid_x, train_y, valid_y = (torch.as_tensor(part) for part in digits())
    draw = torch.Generator().manual_seed(7)
    wrong = torch.rand(len(train_y), generator=draw) < 0.2
    labels = torch.where(wrong, torch.randint(10, (len(train_y),), generator=draw), train_y)
    return (
        train_x.float().reshape(-1, 1, 8, 8),
        valid_x.float().reshape(-1, 1, 8, 8),
        labels,
        valid_y,
    )


def start_residual(config: Config, seed: int) -> State:
    import torch
    from torch import nn

    torch.manual_seed(seed)
    width = config["channels"]
    norm = {
        "batch": lambda: nn.BatchNorm2d(width),
        "group": lambda: nn.GroupNorm(4, width),
        "none": nn.Identity,
    }[config["norm"]]
    first = nn.Conv2d(1, width, 3, padding=1)
    blocks = nn.ModuleList(
        nn.Sequential(norm(), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
        for _ in range(config["blocks"])
    )
    head = nn.Sequential(
        norm(),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(config["dropout"]),
        nn.Linear(4 * width, 10),
    )
    model = nn.ModuleDict({"first": first, "blocks": blocks, "head": head})
    return {
        "model": model,
        "optimizer": optimizer_of(model, config),
        "config": config,
        "seed": seed,
        "unit": 0,
    }


def residual(model: Any, x: Any) -> Any:
    """Return the outputs of the network."""
    x = model["first"](x)
    for block in model["blocks"]:
        x = x + block(x)
    return model["head"](x)


def train_residual(state: State) -> tuple[State, float]:
    import torch
    from torch.nn.functional import cross_entropy

    images, valid_x, labels, valid_y = noisy_digits()
    model, config, unit = state["model"], state["config"], state["unit"]
    draw = torch.Generator().manual_seed(state["seed"] + 1000 * unit)
    model.train()
    batches = torch.randperm(len(images), generator=draw).split(config["batch"])
    for place, rows in enumerate(batches):
        set_rate(state["optimizer"], config, (unit + place / len(batches)) / UNITS)
        state["optimizer"].zero_grad()
        value = cross_entropy(
            residual(model, images[rows]), labels[rows], label_smoothing=config["smoothing"]
        )
        if not torch.isfinite(value):
            break
        value.backward()
        state["optimizer"].step()
    model.eval()
    with torch.no_grad():
        validation = cross_entropy(residual(model, valid_x), valid_y).item()
    state["unit"] += 1
    return state, capped(validation)


HELD_OUT = {
    "recurrent": Problem(
        [
            *OPTIMIZERS,
            choice("cell", "gru", "lstm", "plain"),
            choice("width", 16, 32, 64, 128, ordinal=True),
            number("layers", 1, 3, kind="int"),
            number("dropout", 0.0, 0.5),
            number("clip", 1e-2, 10.0, log=True),
            choice("batch", 8, 16, 32, 64, ordinal=True),
        ],
        start_recurrent,
        train_recurrent,
        UNITS,
    ),
    "noisy-labels": Problem(
        [
            *OPTIMIZERS,
            number("blocks", 0, 4, kind="int"),
            choice("channels", 4, 8, 16, 32, ordinal=True),
            choice("norm", "batch", "group", "none"),
            number("dropout", 0.0, 0.7),
            number("smoothing", 0.0, 0.4),
            choice("batch", 16, 32, 64, 128, ordinal=True),
        ],
        start_residual,
        train_residual,
        UNITS,
    ),
}

ALL_PROBLEMS = PROBLEMS | HELD_OUT
