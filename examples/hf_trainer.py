"""Tune the Trainer of Hugging Face transformers as a command, on one process or several.

    python examples/hf_trainer.py tune [TRIALS] [PROCESSES]

Each trial is this script again: ``torchrun --nproc_per_node PROCESSES hf_trainer.py train``. All
processes train and save; the first one reports. The model is small and new, and so is its text: it
learns to count.
"""

import sys
import warnings

import scrimp

EPOCHS = 9


def train() -> None:
    """One grant of one trial; its parameters and its folder come from the environment."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    from scrimp import script
    from scrimp.integrations.transformers import ScrimpCallback

    warnings.simplefilter("ignore")
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


def tune(trials: int, processes: int) -> None:
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
    launch = ["{python}", "-m", "torch.distributed.run", "--standalone"]
    launch += [f"--nproc_per_node={processes}", __file__, "train"]
    study.optimize(
        scrimp.Command(launch if processes > 1 else ["{python}", __file__, "train"]),
        n_trials=trials,
    )
    spent = round(sum(trial.budget for trial in study.trials))
    print(f"{len(study.trials)} configurations, {spent} epochs instead of {trials * EPOCHS}")
    print(f"eval_loss {study.best_value:.4f} with {study.best_params}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train()
    elif sys.argv[1:2] == ["tune"]:
        tune(*[int(word) for word in [*sys.argv[2:], *["8", "1"][len(sys.argv) - 2 :]]])
    else:
        sys.exit(__doc__)
