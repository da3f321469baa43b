"""scrimp as a backend of Trainer.hyperparameter_search, on the real library."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="make test-integrations installs transformers")

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
)

import scrimp
import scrimp.integrations.transformers_search as search
from scrimp.errors import ConfigError, SpaceError

ROWS = torch.randint(0, 16, (32, 8), generator=torch.Generator().manual_seed(0))
DATA = [{"input_ids": row, "labels": row} for row in ROWS]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def build() -> PreTrainedModel:
    config = GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1)
    config.bos_token_id = config.eos_token_id = 0
    return GPT2LMHeadModel(config)


@pytest.fixture
def trainer(tmp_path: Path) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        num_train_epochs=3,
        eval_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        logging_strategy="no",
        save_strategy="no",
    )
    return Trainer(model_init=build, args=arguments, train_dataset=DATA, eval_dataset=DATA)


def hp_space(trial: search.SpaceTrial) -> dict[str, float]:
    """As one writes it for Optuna."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True),
        "per_device_train_batch_size": trial.suggest_categorical(
            "per_device_train_batch_size", [4, 8]
        ),
        "gradient_accumulation_steps": trial.suggest_int("gradient_accumulation_steps", 1, 3),
    }


def test_it_finds_the_better_learning_rate_and_leaves_the_arguments_alone(trainer: Trainer) -> None:
    best = trainer.hyperparameter_search(
        backend="scrimp", hp_space=hp_space, n_trials=4, direction="minimize", seed=0
    )
    assert best.objective < 2.9 and best.hyperparameters["learning_rate"] > 1e-4
    assert set(best.hyperparameters) == set(hp_space(search.SpaceTrial()))
    assert trainer.args.learning_rate == 5e-5 and trainer.args.per_device_train_batch_size == 8


def test_with_a_budget_poor_runs_are_paused_and_the_study_lasts(
    trainer: Trainer, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    best = trainer.hyperparameter_search(
        backend="scrimp",
        hp_space=lambda _: scrimp.Space(learning_rate=scrimp.Float(1e-4, 1e-1, log=True)),
        n_trials=4,
        direction="minimize",
        budget=scrimp.Budget("epoch", 1, 3),
        method="asha",
        storage=url,
        study_name="hf",
        seed=0,
    )
    study = scrimp.load_study("hf", storage=url)
    assert sorted({trial.budget for trial in study.trials}) == [1, 3]
    assert best.objective == study.best_value
    assert trainer.args.output_dir == str(tmp_path / "out")


def test_spaces_that_cannot_be(trainer: Trainer) -> None:
    with pytest.raises(SpaceError, match="hp_space suggests nothing"):
        trainer.hyperparameter_search(backend="scrimp", hp_space=lambda _: {}, n_trials=1)
    with pytest.raises(
        ConfigError, match="no 'learning_rat' to tune; did you mean 'learning_rate'"
    ):
        trainer.hyperparameter_search(
            backend="scrimp",
            hp_space=lambda trial: {"a": trial.suggest_float("learning_rat", 0, 1)},
            n_trials=1,
        )


def test_the_default_space_is_of_training_arguments(trainer: Trainer) -> None:
    trainer.hyperparameter_search(backend="scrimp", n_trials=1, seed=0)


def test_other_backends_are_known_and_unknown_as_before(trainer: Trainer) -> None:
    with pytest.raises(ValueError, match="nobody is not a valid"):
        trainer.hyperparameter_search(backend="nobody", n_trials=1)
