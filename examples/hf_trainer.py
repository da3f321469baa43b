"""Tune the Trainer of Hugging Face transformers as a command, on one process or several.

    python examples/hf_trainer.py tune [TRIALS] [PROCESSES] [torchrun | accelerate]

Each trial is this script again, by ``torchrun --nproc_per_node PROCESSES hf_trainer.py train`` or
``accelerate launch --num_processes PROCESSES hf_trainer.py train``. All processes train and save;
the first one reports. The model is small and new, and so is its text: it learns to count.
"""

import os
import sys
import warnings

import scrimp

EPOCHS = 9
PROCESS = {"RANK": "0", "WORLD_SIZE": "1"}  # as launchers say it


def train() -> None:
    """One grant of one trial; its parameters and its folder come from the environment."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    from scrimp import script
    from scrimp.integrations.transformers import ScrimpCallback

    warnings.simplefilter("ignore")
    rank, count = (int(os.environ.get(name, default)) for name, default in PROCESS.items())
    print(f"process {rank + 1} of {count}", flush=True)
    rows = torch.stack([torch.arange(start, start + 12) % 24 for start in range(192)])
    data = [{"input_ids": row, "labels": row} for row in rows]

    def build():
        torch.manual_seed(0)
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=24,
                n_positions=12,
                n_embd=16,
                n_layer=1,
                n_head=2,
                bos_token_id=0,
                eos_token_id=0,
            )
        )

    callback = ScrimpCallback("eval_loss")
    arguments = TrainingArguments(
        **callback.arguments,
        **script.params(),
        num_train_epochs=EPOCHS,
        eval_strategy="epoch",
        report_to=[],
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = Trainer(
        model_init=build,
        args=arguments,
        train_dataset=data[:128],
        eval_dataset=data[128:],
        callbacks=[callback],
    )
    trainer.train(resume_from_checkpoint=callback.resume_from)


def command(processes: int, launcher: str) -> list[str]:
    """One process is the script itself; several are started by a launcher."""
    if processes == 1:
        return ["{python}", __file__, "train"]
    if launcher == "accelerate":
        launch = ["{python}", "-m", "accelerate.commands.launch", "--multi_gpu"]
        launch += ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
        return [*launch, f"--num_processes={processes}", __file__, "train"]
    launch = ["{python}", "-m", "torch.distributed.run", "--standalone"]
    return [*launch, f"--nproc_per_node={processes}", __file__, "train"]


def tune(trials: int = 8, processes: int = 1, launcher: str = "torchrun") -> None:
    """A study whose trials are commands."""
    study = scrimp.create_study(
        "hf-trainer",
        scrimp.Space(
            learning_rate=scrimp.Float(1e-4, 1e-1, log=True),
            per_device_train_batch_size=scrimp.Ordinal([8, 16, 32]),
        ),
        metric="eval_loss",
        budget=scrimp.Budget("epoch", 1, EPOCHS),
        method="asha",
        load_if_exists=True,
        seed=0,
    )
    study.optimize(scrimp.Command(command(processes, launcher)), n_trials=trials)
    spent = round(sum(trial.budget for trial in study.trials))
    print(f"{len(study.trials)} configurations, {spent} epochs instead of {trials * EPOCHS}")
    print(f"eval_loss {study.best_value:.4f} with {study.best_params}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train()
    elif sys.argv[1:2] == ["tune"]:
        tune(*[int(word) if word.isdigit() else word for word in sys.argv[2:5]])
    else:
        sys.exit(__doc__)
