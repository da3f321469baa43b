"""Tune XGBoost on handwritten digits with boosting rounds as the budget.

    python examples/xgboost_rounds.py [TRIALS]

Most configurations are given up after a few rounds; the promising ones continue boosting from the
booster they saved. It writes to scrimp.db; interrupt it and run it again to resume.
"""

import sys

import scrimp

ROUNDS = 81
SPACE = scrimp.Space(
    eta=scrimp.Float(0.01, 1.0, log=True),
    max_depth=scrimp.Int(2, 8),
    min_child_weight=scrimp.Float(0.1, 10.0, log=True),
    reg_lambda=scrimp.Float(0.01, 10.0, log=True),
    colsample_bytree=scrimp.Float(0.3, 1.0),
)


def objective(trial):
    """Boost for as many rounds as the trial is granted, and report the error after every third."""
    import xgboost
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from scrimp.integrations.xgboost import ScrimpCallback

    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.4, random_state=0, stratify=labels
    )
    callback = ScrimpCallback({"error": "held_out-merror"}, trial, every=3)
    fixed = {"objective": "multi:softmax", "num_class": 10, "eval_metric": "merror", "nthread": 1}
    xgboost.train(
        {**fixed, **trial.params},
        xgboost.DMatrix(train_x, train_y),
        num_boost_round=callback.rounds,
        evals=[(xgboost.DMatrix(test_x, test_y), "held_out")],
        xgb_model=callback.booster,
        callbacks=[callback],
        verbose_eval=False,
    )


def main(trials: int) -> None:
    study = scrimp.create_study(
        "xgboost-rounds",
        SPACE,
        metric="error",
        budget=scrimp.Budget("round", 3, ROUNDS),
        method="mobster-joint",
        load_if_exists=True,
        seed=0,
    )
    study.optimize(objective, n_trials=trials)
    spent = round(sum(trial.budget for trial in study.trials))
    print(f"{len(study.trials)} configurations, {spent} rounds instead of {trials * ROUNDS}")
    print(f"best error {study.best_value:.4f} with {study.best_params}")
    print(f"its booster is in {study.best_checkpoint}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
