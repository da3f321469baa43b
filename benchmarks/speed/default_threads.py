"""Measure the README's first example with default threads and with one thread.

    python benchmarks/run.py default_threads --repeats 5

Processes run in turn. The figures are the CPU seconds of the whole process (imports, all threads
and the objective included), and the wall time of an ask in the same space (median and maximum of
60). `--without-limit` adds decisions that use as many threads as the libraries choose.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

SPACE = """
import contextlib, json, sys, time, scrimp
if "--without-limit" in sys.argv:
    import scrimp.threads as threads
    threads._Loaded.controller = lambda self: __import__("threadpoolctl").ThreadpoolController().select(user_api="none")
space = scrimp.Space(
    lr=scrimp.Float(1e-5, 1e-1, log=True),
    layers=scrimp.Int(1, 8),
    optimizer=scrimp.Categorical(["adamw", "sgd"]),
    momentum=scrimp.Float(0.0, 0.99, when={"optimizer": "sgd"}),
)
def error(params):
    return (params["layers"] - 3) ** 2 + abs(params["lr"] - 1e-3) * 100 + params.get("momentum", 0.5)
"""
BLOCK = SPACE + "scrimp.minimize(error, space, n_trials=30, seed=0)\nprint('[0.0]')\n"
ASKS = (
    SPACE
    + """
study, spent = scrimp.create_study("asks", space, metric="error", storage="memory://", seed=0), []
for _ in range(60):
    started = time.perf_counter(), time.process_time()
    trial = study.ask()
    spent.append([time.perf_counter() - started[0], time.process_time() - started[1]])
    study.tell(trial, error(trial.params))
print(json.dumps(spent))
"""
)


def run(program: str, one_thread: bool, options: list[str]) -> tuple[float, list[list[float]]]:
    """Return the CPU seconds of a process, and its output."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment |= dict.fromkeys(VARIABLES, "1") if one_thread else {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", program, *options]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-limit", action="store_true")
    asked = parser.parse_args()
    kinds: dict[str, tuple[bool, list[str]]] = {
        "default threads": (False, []),
        "one thread": (True, []),
    }
    if asked.without_limit:
        kinds["default threads, no limit"] = (False, ["--without-limit"])
    blocks: dict[str, list[float]] = {kind: [] for kind in kinds}
    asks: dict[str, list[tuple[float, list[list[float]]]]] = {kind: [] for kind in kinds}
    for _ in range(asked.repeats):
        for kind, (one_thread, options) in kinds.items():
            blocks[kind].append(run(BLOCK, one_thread, options)[0])
            asks[kind].append(run(ASKS, one_thread, options))
    single = statistics.median(blocks["one thread"])
    for kind in kinds:
        block = statistics.median(blocks[kind])
        times = [wall for _, each in asks[kind] for wall, _ in each]
        inner = statistics.median(cpu for _, each in asks[kind] for _, cpu in each)
        print(
            f"{kind}: block 1 {block:.2f} CPU seconds ({block / single:.2f} times one thread), 60"
            f" asks {statistics.median(cpu for cpu, _ in asks[kind]):.2f}; an ask"
            f" {1000 * statistics.median(times):.0f} ms in the median ({1000 * inner:.0f} ms of CPU"
            f" time), {1000 * max(times):.0f} at most"
        )


if __name__ == "__main__":
    main()
