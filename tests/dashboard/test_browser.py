"""Real Chromium on a study that is running: pictures, numbers, table, buttons, and no request that
leaves the machine.

Screenshots in light, dark and narrow go to the folder SCRIMP_SCREENSHOTS, or to a temporary one.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from tests.dashboard.conftest import HOSTILE, objective

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed: the pages are not tried in a browser"
)

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="module")
def address(url: str) -> Iterator[str]:
    """A server in a process of its own, over the studies of the other tests."""
    command = [
        str(Path(sys.executable).with_name("scrimp")),
        "dashboard",
        "--no-token",
        "--port",
        "0",
        "--storage",
        url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split(" at ")[1].split("  ")[0].rstrip("/")
        process.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


class Tab:
    """A page that remembers what went wrong in it and where it sent requests."""

    def __init__(
        self, browser: Any, address: str, scheme: str = "light", width: int = 1280
    ) -> None:
        self.address = address
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: self.errors.append(f"a script spoke: {dialog.message}")
        )
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def open(self, path: str) -> Any:
        self.page.goto(self.address + path)
        return self.page

    def drawn(self, name: str) -> Any:
        """Wait until a figure is drawn."""
        figure = self.page.locator(f"#figure-{name}")
        figure.scroll_into_view_if_needed()
        self.page.wait_for_selector(f"#figure-{name}[data-drawn=yes]")
        return figure

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
        assert self.hosts <= {urlsplit(self.address).netloc}


def show(url: str, name: str) -> dict[str, Any]:
    shown = CliRunner().invoke(app, ["show", name, "--storage", url, "--json"]).stdout
    record: dict[str, Any] = json.loads(shown)
    return record


def test_every_page_of_a_finished_study(address: str, url: str, browser: Any) -> None:
    tab = Tab(browser, address)
    page = tab.open("/")
    page.get_by_role("link", name="staged").click()
    record = show(url, "staged")
    assert float(page.locator("#best-value").get_attribute("data-value")) == record["best"]["value"]
    assert float(page.locator("#spent").get_attribute("data-value")) == record["spent"]
    assert int(page.locator("#trial-count").inner_text()) == len(record["trials"])
    for name in (
        "history",
        "curves",
        "rungs",
        "parallel",
        "slice",
        "importance",
        "contour",
        "timeline",
        "edf",
    ):
        figure = tab.drawn(name)
        assert figure.locator(".plot svg").count() > 0 and figure.locator(
            "[role=img]"
        ).get_attribute("aria-label")
    page.get_by_role("button", name="budget", exact=True).click()
    page.get_by_text("budget spent (epochs)").wait_for()
    page.locator("#next").click()
    assert (
        page.locator("#page").inner_text() == "2"
        and page.locator("#trial-table tbody tr").count() == 10
    )
    page.locator("#trial-table th a", has_text="val_error").click()
    values = [cell.get_attribute("data-value") for cell in page.locator("td[data-value]").all()]
    expected = sorted(trial["best"] for trial in record["trials"] if trial["best"] is not None)
    assert [float(value) for value in values if value] == expected[
        : len([value for value in values if value])
    ]
    page.locator("select[name=status]").select_option("failed")
    page.get_by_role("button", name="Show").click()
    assert page.locator("#trial-table tbody tr").count() == record["counts"]["failed"]
    page.locator("#trial-table tbody tr a").first.click()
    assert "out of memory" in page.locator("#message").inner_text()
    page.locator("#why").wait_for()
    tab.close()


def test_hostile_names_do_nothing(address: str, browser: Any) -> None:
    tab = Tab(browser, address)
    tab.open(f"/study?name={quote(HOSTILE, safe='')}")
    for name in ("history", "slice", "parallel", "edf"):
        tab.drawn(name)
    assert tab.page.locator("h1").inner_text().startswith("<script>alert('name')</script>")
    tab.open(f"/trial?study={quote(HOSTILE, safe='')}&number=1")
    assert "<img src=x onerror" in tab.page.locator("#message").inner_text()
    tab.open(f"/compare?study=staged&study={quote(HOSTILE, safe='')}")
    tab.page.wait_for_selector("figure[data-drawn=yes]")
    tab.close()


def test_a_running_study_is_followed_and_obeys(address: str, url: str, browser: Any) -> None:
    space = scrimp.load_study("staged", storage=url).history.problem.space
    budget = scrimp.Budget("epoch", 1, 9)
    name = f"running {os.getpid()}"
    study = scrimp.create_study(
        name, space, metric="val_error", budget=budget, method="asha", storage=url, seed=1
    )
    slow = threading.Event()

    def slowly(trial: Any) -> None:
        slow.wait(0.05)
        objective(trial)

    run = threading.Thread(target=lambda: study.optimize(slowly, n_trials=400), daemon=True)
    run.start()
    tab = Tab(browser, address)
    page = tab.open(f"/study?name={quote(name)}")
    tab.drawn("history")
    page.wait_for_function("Number(document.getElementById('trial-count').innerText) > 3")
    before = int(page.locator("#trial-count").inner_text())
    page.wait_for_function(
        f"Number(document.getElementById('trial-count').innerText) > {before}"
    )  # by itself
    page.wait_for_function(
        "/promoted to|paused after/.test(document.getElementById('lately').textContent)"
    )
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector("#state.state-paused")
    deadline = time.monotonic() + 20
    while (
        scrimp.load_study(name, storage=url).history.counts["running"]
        and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    standing = len(scrimp.load_study(name, storage=url).trials)
    page.locator("#enqueue summary").click()
    page.locator("input[name=params_lr]").fill("0.00123")
    page.get_by_role("button", name="Put into the queue").click()
    page.get_by_text("tried next").wait_for()
    assert len(scrimp.load_study(name, storage=url).trials) == standing and run.is_alive()
    page.get_by_role("button", name="Let it go on").click()
    page.wait_for_function(f"Number(document.getElementById('trial-count').innerText) > {standing}")
    assert any(
        trial.params["lr"] == 0.00123 for trial in scrimp.load_study(name, storage=url).trials
    )
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("#state.state-stopped")
    run.join(30)
    assert not run.is_alive()
    tab.close()


def test_a_result_is_told_by_hand(address: str, url: str, browser: Any) -> None:
    name = f"hand {os.getpid()}"
    study = scrimp.create_study(
        name, scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    trial = study.ask()
    tab = Tab(browser, address)
    page = tab.open(f"/trial?study={quote(name)}&number={trial.id}")
    page.locator("input[name=value]").fill("0.625")
    page.get_by_role("button", name="Record this value").click()
    page.get_by_text("The result was recorded").wait_for()
    assert study.best_value == 0.625 and page.locator("#best-value").inner_text() == "0.625"
    tab.close()


def test_a_selection_shows_its_answer_and_past_studies_their_weights(
    address: str, url: str, browser: Any
) -> None:
    name = f"selection {os.getpid()}"
    selection = scrimp.create_selection(
        name, checkpoints=[1, 2, 3, 4, 5, 6], tasks=["<a>", "b"], storage=url, seed=0
    )
    for number in range(7):
        selection.tell(*selection.ask(), 0.1 * number, stderr=0.05)
    tab = Tab(browser, address)
    page = tab.open(f"/study?name={quote(name)}")
    assert page.locator("#answer").inner_text() == str(
        show(url, name)["recommendation"]["checkpoint"]
    )
    for figure in ("selection_grid", "selection_curve", "selection_confidence"):
        tab.drawn(figure)
    tab.open(f"/trial?study={quote(name)}&number=6")
    page.get_by_text("The answer then was checkpoint").wait_for()
    tab.open("/study?name=fallen")
    tab.drawn("source_weights")
    page.get_by_text("degraded", exact=True).first.wait_for()
    page.get_by_text(
        "nothing was observed"
    ).first.scroll_into_view_if_needed()  # said, and no error in the console
    tab.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_screenshots(address: str, browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    folder = Path(os.environ.get("SCRIMP_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    tab = Tab(browser, address, scheme, width)
    pages = {"study": "/study?name=staged", "trial": "/trial?study=staged&number=1"}
    if (scheme, width) == ("light", 1280):
        pages |= {"studies": "/", "compare": "/compare?study=staged&study=fallen"}
    for title, path in pages.items():
        page = tab.open(path)
        if title != "studies":
            page.locator("figure").first.scroll_into_view_if_needed()
            page.wait_for_selector("figure[data-drawn=yes]")
        assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
        page.screenshot(path=folder / f"{title}-{scheme}-{width}.png")
        assert (folder / f"{title}-{scheme}-{width}.png").stat().st_size > 5_000
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 28)" if scheme == "dark" else "rgb(255, 255, 255)")
    tab.close()


def test_a_browser_that_leaves_does_no_harm(address: str, browser: Any) -> None:
    for _ in range(3):
        tab = Tab(browser, address)
        tab.open("/study?name=staged")
        tab.context.close()  # while figures and the stream are on their way
    tab = Tab(browser, address)
    tab.open("/study?name=staged")
    tab.drawn("history")
    tab.close()
