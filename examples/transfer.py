"""Every past study makes the next one cheaper: the same model on five data sets, one after the
other.

    python examples/transfer.py

A support vector machine is tuned on one small data set after the other; each study learns from all
before it. Compare how many trials each needs until it is as good as its own best.
"""

import scrimp

try:
    from sklearn import datasets
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install scikit-learn") from None

SPACE = scrimp.Space(
    C=scrimp.Float(1e-3, 1e3, log=True),
    kernel=scrimp.Categorical(["linear", "rbf"]),
    gamma=scrimp.Float(1e-5, 10.0, log=True, when={"kernel": "rbf"}),
)


def tasks() -> dict[str, tuple]:
    """Data sets that come with scikit-learn, and made ones."""
    found = {
        name: getattr(datasets, f"load_{name}")(return_X_y=True)
        for name in ("iris", "wine", "breast_cancer")
    }
    for seed in (1, 2):
        found[f"made-{seed}"] = datasets.make_classification(
            300, 12, n_informative=6, random_state=seed
        )
    return found


def main() -> None:
    """Tune on each data set, learning from those before."""
    storage = "sqlite:///transfer-example.db"
    for name in scrimp.studies(storage):
        scrimp.delete_study(name, storage=storage)
    for name, (x, y) in tasks().items():

        def objective(trial: scrimp.LiveTrial, x=x, y=y) -> float:
            model = make_pipeline(StandardScaler(), SVC(**trial.params))
            return 1.0 - float(cross_val_score(model, x, y, cv=3).mean())

        features = {"rows": len(x), "columns": x.shape[1], "classes": len(set(y))}
        study = scrimp.create_study(
            name, SPACE, learn_from="all", features=features, storage=storage, seed=0
        )
        study.optimize(objective, n_trials=12)
        values = [trial.value for trial in study.trials]
        reached = next(k for k, value in enumerate(values, 1) if value <= study.best_value + 0.002)
        past = len(study.history.sources)
        print(
            f"{name:14} {past} past studies, error {study.best_value:.4f}, within 0.002 of it after"
            f" {reached} trials"
        )


if __name__ == "__main__":
    main()
