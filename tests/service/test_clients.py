"""The clients in other languages drive real studies, and so do the recipes with curl."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import scrimp
from scrimp.explain.replay import replay
from scrimp.storage.http import HttpStorage
from scrimp.study_log.record import StudyRecord
from tests.tools.served import Served
from tests.waiting import PATIENCE

CLIENTS = Path(__file__).parents[2] / "clients"

NODE = """
import { Scrimp, ScrimpError } from "%s/scrimp.mjs";
const scrimp = new Scrimp(process.env.SCRIMP_SERVER, process.env.SCRIMP_TOKEN);
const space = { x: { type: "float", low: -1, high: 1 }, kind: { type: "categorical", choices: ["a", "b"] } };
await scrimp.create("js", { space, method: "gp", n_trials: 12, seed: 0 });
await scrimp.enqueue("js", { x: 0.25, kind: "b" });
await scrimp.advise("js", [{ x: 0.01, kind: "a" }, { x: 0.02 }], "ann", "near the middle");
let failed = false;
const end = await scrimp.run("js", async ({ params }) => {
  if (params.x > 0.9) throw new Error("too large");
  return params.x ** 2;
});
const page = await scrimp.read("js", { count: 1000 });
await scrimp.create("curves", { space, method: "asha", budget: { name: "epoch", minimum: 1, maximum: 3 }, seed: 0 });
const { trials: [trial] } = await scrimp.ask("curves", { lease: 30 });
const beat = await scrimp.heartbeat("curves", trial);
const answer = await scrimp.report("curves", trial, 1, { value: 0.5, memory: NaN });
try { await scrimp.ask("nothing"); } catch (error) { failed = error instanceof ScrimpError && error.status === 404; }
console.log(JSON.stringify({ best: end.best, first: page.trials[0].params, trials: page.trials.length, beat, answer, failed,
  names: await scrimp.studies(), why: await scrimp.explain("js"),
  predicted: await scrimp.predict("js", [{ x: 0, kind: "a" }]) }));
"""

R = """
source("%s/scrimp.R")
server <- scrimp(Sys.getenv("SCRIMP_SERVER"), Sys.getenv("SCRIMP_TOKEN"))
space <- list(x = list(type = "float", low = -1, high = 1), kind = list(type = "categorical", choices = list("a", "b")))
server$create("r", space = space, method = "gp", n_trials = 12, seed = 0)
server$enqueue("r", list(x = 0.25, kind = "b"))
server$advise("r", list(list(x = 0.01, kind = "a"), list(x = 0.02)), by = "ann", why = "near the middle")
end <- server$run("r", function(trial) if (trial$params$x > 0.9) stop("too large") else trial$params$x^2)
page <- server$read("r", count = 1000)
server$create("curves", space = space, method = "asha", budget = list(name = "epoch", minimum = 1, maximum = 3), seed = 0)
trial <- server$ask("curves", lease = 30)$trials[[1]]
beat <- server$heartbeat("curves", trial)
answer <- server$report("curves", trial, 1, list(value = 0.5, memory = NaN))
failed <- tryCatch({ server$ask("nothing"); FALSE }, error = function(error) grepl("HTTP 404", conditionMessage(error)))
cat(jsonlite::toJSON(list(best = end$best, first = page$trials[[1]]$params, trials = length(page$trials), beat = beat,
  answer = answer, failed = failed, names = server$studies(), why = server$explain("r"),
  predicted = server$predict("r", list(list(x = 0, kind = "a")))), auto_unbox = TRUE, digits = NA))
"""


def check(said: str, server: Served, token: str, name: str) -> None:
    """A study of twelve trials, the first from the queue, whose decisions can all be computed
    again."""
    found = json.loads(said.strip().splitlines()[-1])
    study = scrimp.load_study(name, storage=HttpStorage(server.url, token))
    assert found["trials"] == len(study.trials) == 12 and found["first"] == {"x": 0.25, "kind": "b"}
    assert found["best"]["value"] == study.best_value < 0.01
    assert found["beat"] == {"continue": True, "status": "running"}
    assert found["answer"] == {"continue": False, "status": "paused"}
    assert found["failed"] is True and found["names"] == [name, "curves"]
    assert found["why"] and found["predicted"]
    (adviser,) = StudyRecord.of(study.history).advisers
    assert (adviser.by, adviser.proposed) == ("ann", 2) and adviser.tried > 0
    assert {"x": 0.01, "kind": "a"} in [trial.params for trial in study.trials]
    assert all(step.same for step in replay(study.history.events))


def environment(server: Served, token: str) -> dict[str, str]:
    return {**os.environ, "SCRIMP_SERVER": server.url, "SCRIMP_TOKEN": token}


def test_javascript(server: Served) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed here")
    token = server.token("own")
    done = subprocess.run(
        ["node", "--input-type=module", "-e", NODE % CLIENTS],
        env=environment(server, token),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, server, token, "js")


def test_r(server: Served) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed here")
    packages = ["Rscript", "-e", "library(curl); library(jsonlite)"]
    if subprocess.run(packages, capture_output=True).returncode:
        pytest.skip("the R packages curl and jsonlite are not installed here")
    token = server.token("own")
    done = subprocess.run(
        ["Rscript", "-e", R % CLIENTS],
        env=environment(server, token),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, server, token, "r")


def recipe() -> str:
    """The block of docs/service.md that uses curl."""
    page = (CLIENTS.parent / "docs" / "service.md").read_text(encoding="utf-8")
    return page.split('```bash title="curl"\n')[1].split("```")[0]


def test_the_recipe_with_curl(server: Served, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed here")
    token = server.token("own")
    done = subprocess.run(
        ["bash", "-euc", recipe()],
        env=environment(server, token),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    study = scrimp.load_study("digits", storage=HttpStorage(server.url, token))
    assert study.best_value == 0.12 and study.trials[0].status == "completed"
