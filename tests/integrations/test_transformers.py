"""The Trainer of transformers as a trial, on the real library, with a tiny model of its own."""

import shutil
import subprocess
import sys
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
    set_seed,
)

import scrimp
from scrimp.errors import BrokenObjective, ReportError, StorageError
from scrimp.integrations.transformers import ScrimpCallback

ROWS = torch.randint(0, 16, (32, 8), generator=torch.Generator().manual_seed(0))
DATA = [{"input_ids": row, "labels": row} for row in ROWS]
QUIET = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "logging_strategy": "no"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def build() -> PreTrainedModel:
    set_seed(0)
    config = GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=1)
    config.bos_token_id = config.eos_token_id = 0
    config.embd_pdrop = config.resid_pdrop = config.attn_pdrop = 0.0
    return GPT2LMHeadModel(config)


def fit(rate: float, callback: ScrimpCallback, **settings: object) -> Trainer:
    given = {"num_train_epochs": 9, "eval_strategy": "epoch", **settings}
    arguments = TrainingArguments(
        **callback.arguments,
        **QUIET,
        **given,
        learning_rate=rate,
        per_device_train_batch_size=8,
    )
    trainer = Trainer(
        model_init=build,
        args=arguments,
        train_dataset=DATA,
        eval_dataset=DATA,
        callbacks=[callback],
    )
    trainer.train(resume_from_checkpoint=callback.resume_from)
    return trainer


def objective(trial: scrimp.LiveTrial) -> None:
    fit(trial.params["rate"], ScrimpCallback({"loss": "eval_loss"}, trial))


class Recorder:
    """A trial that is never paused."""

    budget, step, resumed = 9.0, 0.0, False

    def __init__(self) -> None:
        self.losses: list[float] = []

    @property
    def checkpoint_dir(self) -> None:
        raise ReportError("keeps none")

    def report(self, value: dict[str, float], /, *, step: float | None = None) -> bool:
        self.losses.append(value["eval_loss"])
        return True


def test_a_paused_trial_goes_on_as_if_it_had_not_stopped(paused_study: scrimp.Study) -> None:
    paused_study.optimize(objective, n_trials=4)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert longest.attempt > 1 and longest.budget in (3, 9)
    whole = Recorder()
    fit(longest.config["rate"], ScrimpCallback("eval_loss", whole))
    losses = [point.metrics["loss"] for point in longest.curve]
    assert losses == pytest.approx(whole.losses[: len(losses)], rel=1e-4)


def test_steps_of_the_optimizer_as_budget_and_the_end_of_a_grant_is_evaluated(
    paused_study: scrimp.Study,
) -> None:
    def steps(trial: scrimp.LiveTrial) -> None:
        callback = ScrimpCallback({"loss": "eval_loss"}, trial, unit="step")
        fit(trial.params["rate"], callback, eval_strategy="steps", eval_steps=2, max_steps=9)

    paused_study.optimize(steps, n_trials=4)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert longest.budget in (3, 9)
    assert [point.step for point in longest.curve] == [1, 2, 3, 4, 6, 8, 9][: len(longest.curve)]


def test_a_metric_that_is_not_measured_is_named_with_those_that_are(
    paused_study: scrimp.Study,
) -> None:
    def wrong(trial: scrimp.LiveTrial) -> None:
        fit(0.1, ScrimpCallback("eval_los", trial))

    with pytest.raises(BrokenObjective) as caught:
        paused_study.optimize(wrong, n_trials=3)
    assert "did you mean 'eval_loss'?" in caught.value.details


def test_outside_a_trial() -> None:
    with pytest.raises(ReportError, match="outside a trial: pass it the trial"):
        ScrimpCallback("eval_loss")
    with pytest.raises(ReportError, match="unit is 'batch'"):
        ScrimpCallback("eval_loss", Recorder(), unit="batch")  # type: ignore[arg-type]


def test_a_checkpoint_that_cannot_be_read_is_named(paused_study: scrimp.Study) -> None:
    def spoilt(trial: scrimp.LiveTrial) -> None:
        if trial.resumed:
            for path in trial.checkpoint_dir.glob("checkpoint-*"):
                shutil.rmtree(path)
                path.mkdir()
        objective(trial)

    paused_study.optimize(spoilt, n_trials=4, catch=(StorageError,))
    failed = [trial for trial in paused_study.trials if trial.status == "failed"]
    assert failed and all("of step 1 at" in trial.message for trial in failed)


@pytest.mark.parametrize("launcher", ["torchrun", "accelerate"])
def test_launchers_as_the_command_of_a_trial_where_the_first_process_speaks(
    tmp_path: Path, launcher: str
) -> None:
    script = Path(__file__).resolve().parents[2] / "examples" / "hf_trainer.py"
    text = subprocess.run(
        [sys.executable, str(script), "tune", "1", "2", launcher],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    ).stdout
    assert "1 configurations" in text
    study = scrimp.load_study("hf-trainer", storage=f"sqlite:///{tmp_path}/scrimp.db")
    steps = [point.step for point in study.trials[0].curve]
    assert steps == list(range(1, len(steps) + 1))  # once each
    log = study.trial_folder(0).with_name("trial-000000.log").read_text()
    assert "process 1 of 2" in log and "process 2 of 2" in log
