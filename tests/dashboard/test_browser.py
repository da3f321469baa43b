"""Real Chromium on studies that run and that ended: pictures, table, buttons, and no way out of the
machine.

Screenshots go to the folder SCRIMP_SCREENSHOTS when it is set.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.errors import StudyError
from tests.dashboard.conftest import HOSTILE, objective
from tests.dashboard.tabs import ARGUMENTS, CHROMIUM, Tab

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed: the pages are not tried in a browser"
)


OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8")
"""A function of the page: pairs of texts whose boxes lie over each other."""

PAGES = ("/", "/study?name=staged", "/trial?study=staged&number={best}")


AXE = Path(os.environ.get("SCRIMP_AXE", "node_modules/axe-core/axe.min.js"))
"""The rules of accessibility, if `npm install --no-save axe-core` has put them there."""


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
        yield line.strip().rstrip("/")
        process.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


def show(url: str, name: str) -> dict[str, Any]:
    shown = CliRunner().invoke(app, ["show", name, "--storage", url, "--json"]).stdout
    record: dict[str, Any] = json.loads(shown)
    return record


def matching(page: Any, count: int) -> None:
    """Wait until the table says that so many trials match."""
    page.wait_for_function(
        "count => document.getElementById('matching').textContent === String(count)", arg=count
    )


def test_no_panel_is_empty_and_numbers_are_those_of_the_log(
    address: str, url: str, browser: Any
) -> None:
    tab = Tab(browser, address)
    page = tab.open("/")
    page.get_by_role("link", name="staged").click()
    record = show(url, "staged")
    best = page.locator("#best-value").get_attribute("data-value")
    assert float(best) == record["best"]["value"]
    assert float(page.locator("#spent").get_attribute("data-value")) == record["spent"]
    assert int(page.locator("#trial-count").inner_text()) == len(record["trials"])
    assert page.locator("#state").inner_text() == "finished"
    top = page.locator("#figure-curves").bounding_box()
    assert top["y"] + top["height"] < 900, "the history and the curves are on the first screen"
    names = tab.figures()
    assert {"history", "curves", "parallel", "contour", "rungs", "timeline"} <= set(names)
    for name in names:
        figure = tab.drawn(name)
        marks = figure.locator(".plot .trace, .plot .parcoords, .plot .contourlayer, .plot .point")
        assert marks.count() > 0, f"{name} shows nothing"
        assert len(figure.locator("figcaption").inner_text()) > 20
        assert "staged" not in figure.locator("h3").inner_text()
    assert not page.locator("#later").is_visible()
    tab.close()


def test_the_filter_the_marks_and_the_brush(address: str, url: str, browser: Any) -> None:
    record = show(url, "staged")
    good = [t for t in record["trials"] if t["best"] is not None and t["best"] < 0.3]
    tab = Tab(browser, address)
    page = tab.open("/study?name=staged")
    page.locator("input[name=text]").fill("val_error<0.3")
    page.get_by_role("button", name="Show").click()
    matching(page, len(good))
    shown = [cell.get_attribute("data-value") for cell in page.locator("td[data-value]").all()]
    assert [float(value) for value in shown] == sorted(trial["best"] for trial in good)
    assert "text=val_error" in page.url and 0 < len(good) < 50
    page.locator("[data-mark]").nth(0).check()
    page.locator("input[name=text]").fill("")
    page.locator("select[name=status]").select_option("failed")
    matching(page, record["counts"]["failed"])
    page.locator("select[name=status]").select_option("")
    matching(page, 60)
    page.locator("[data-mark]").nth(1).check()
    page.get_by_role("button", name="Compare 2 selected").click()
    assert page.locator("#compared-trials thead a").count() == 2
    tab.drawn("curves")
    tab.open("/study?name=staged")
    tab.drawn("parallel")
    page.evaluate(
        "Plotly.restyle(document.querySelector('#figure-parallel .plot'),"
        " {'dimensions[0].constraintrange': [[-4, -2]], 'dimensions[1].constraintrange': [[-0.2, 0.2]]})"
    )
    inside = [t for t in record["trials"] if 1e-4 <= t["params"]["lr"] <= 1e-2]
    matching(page, sum(trial["params"]["kind"] == "a" for trial in inside))
    assert page.locator("input[name=text]").input_value() == "lr=0.0001..0.01 kind=a"
    tab.close()


def test_a_click_leads_to_the_trial_and_what_is_chosen_is_drawn(
    address: str, url: str, browser: Any
) -> None:
    tab = Tab(browser, address)
    page = tab.open("/study?name=staged")
    tab.drawn("history")
    page.get_by_role("button", name="budget", exact=True).click()
    page.get_by_text("budget spent (epochs)").wait_for()
    page.locator("#figure-history").get_by_role("button", name="log").click()
    page.wait_for_function(
        "document.querySelector('#figure-history .plot')._fullLayout.yaxis.type === 'log'"
    )
    tab.drawn("contour")
    page.locator("#figure-contour select[data-option=x]").select_option("depth")
    page.get_by_text("Model of val_error over depth and lr").wait_for()  # they change places
    page.evaluate("scrollTo(0, 0)")
    plot = page.locator("#figure-curves .plot")
    plot.evaluate(
        "plot => plot.on('plotly_hover', given => { plot.under = given.points[0].data.meta.trial; })"
    )
    best = show(url, "staged")["best"]["trial"]
    place = plot.evaluate(
        """(plot, number) => {
            const box = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
            const {x, y} = plot._fullData.find(one => one.meta && one.meta.trial === number);
            const last = x.length - 1;
            return [box.x + xaxis._offset + xaxis.c2p(x[last]), box.y + yaxis._offset + yaxis.c2p(y[last])];
        }""",
        best,
    )
    page.mouse.move(*place)
    page.wait_for_function("document.querySelector('#figure-curves .plot').under !== undefined")
    under = plot.evaluate("plot => plot.under")  # others may end at the same place
    page.mouse.click(*place)
    page.wait_for_url(f"**/trial?study=staged&number={under}")
    assert page.locator("#value").count() == 1 and "by its best value" in page.content()
    tab.close()


def test_hostile_names_do_nothing(address: str, browser: Any) -> None:
    tab = Tab(browser, address)
    tab.open(f"/study?name={quote(HOSTILE, safe='')}")
    for name in tab.figures():
        tab.drawn(name)
    assert tab.page.locator("h1").inner_text().startswith("<script>alert('name')</script>")
    tab.open(f"/trial?study={quote(HOSTILE, safe='')}&number=1")
    assert "<img src=x onerror" in tab.page.locator("#message").inner_text()
    tab.open(f"/compare?study=staged&study={quote(HOSTILE, safe='')}")
    tab.page.wait_for_selector("figure[data-drawn=yes]")
    tab.close()


VIEW = """() => {
    const plot = document.querySelector('#figure-history .plot'), {xaxis, yaxis} = plot._fullLayout;
    const hidden = plot._fullData.filter(one => one.visible === 'legendonly').map(one => one.name);
    return [xaxis.range, yaxis.range, hidden];
}"""


def test_zoom_and_legend_survive_five_updates_of_a_study_that_obeys(
    address: str, url: str, browser: Any
) -> None:
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

    def running() -> None:
        study.optimize(slowly, n_trials=2000)

    run = threading.Thread(target=running, daemon=True)
    study.enqueue({"lr": 0.01, "kind": "a", "depth": 2})
    run.start()
    tab = Tab(browser, address)
    page = tab.open(f"/study?name={quote(name)}")
    page.wait_for_function("Number(document.getElementById('trial-count').innerText) > 3")
    page.reload()  # now there is something to draw
    tab.drawn("history")
    box = page.locator("#figure-history .plot .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    page.wait_for_function(
        "document.querySelector('#figure-history .plot')._fullLayout.xaxis.autorange === false"
    )
    page.locator("#figure-history .legendtoggle").first.click()
    page.wait_for_function(
        "document.querySelector('#figure-history .plot')._fullData.some(one => one.visible === 'legendonly')"
    )
    before, draws = page.evaluate(VIEW), page.locator("#figure-history").get_attribute("data-draws")
    page.wait_for_function(
        "draws => Number(document.getElementById('figure-history').dataset.draws) >= draws + 5",
        arg=int(draws),
    )
    assert page.evaluate(VIEW) == before and before[2] == ["partly trained"]
    page.wait_for_function(
        "/promoted to|paused after/.test(document.getElementById('latest').textContent)"
    )
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("#state.state-stopped")
    run.join(30)
    assert not run.is_alive()
    tab.close()
    scrimp.delete_study(name, storage=url)


def test_a_result_is_told_and_a_study_deleted_by_hand(address: str, url: str, browser: Any) -> None:
    name = f"hand {os.getpid()}"
    study = scrimp.create_study(
        name, scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    trial = study.ask()
    tab = Tab(browser, address)
    page = tab.open(f"/trial?study={quote(name)}&number={trial.id}")
    page.locator("input[name=metric_value]").fill("0.625")
    page.get_by_role("button", name="Record value").click()
    page.get_by_text("The result was recorded").wait_for()
    assert study.best_value == 0.625 and page.locator("#best-value").inner_text() == "0.625"
    page.locator("#enqueue summary").click()
    page.locator("input[name=params_x]").fill("0.125")
    page.get_by_role("button", name="Enqueue", exact=True).click()
    page.get_by_text("runs next").wait_for()
    assert study.ask().params == {"x": 0.125}
    study.stop()
    tab.open("/")
    page.get_by_label(f"compare {name}").check()
    page.get_by_role("button", name="Delete selected").click()
    page.locator("#delete-button").click()
    page.get_by_text("The selected studies are deleted").wait_for()
    assert page.get_by_role("link", name=name).count() == 0
    with pytest.raises(StudyError):
        scrimp.load_study(name, storage=url)
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
    page.locator("#decisions > summary").click()
    page.get_by_text("The answer then was checkpoint").first.wait_for()
    tab.open("/study?name=fallen")
    tab.drawn("source_weights")
    page.get_by_text("degraded", exact=True).first.wait_for()
    tab.close()
    scrimp.delete_study(name, storage=url)


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440), ("light", 2560)])
def test_no_text_lies_over_another(
    address: str, url: str, browser: Any, scheme: str, width: int
) -> None:
    tab = Tab(browser, address, scheme, width)
    best = show(url, "staged")["best"]["trial"]
    for path in PAGES:
        page = tab.open(path.format(best=best))
        for name in tab.figures():
            tab.drawn(name)
        page.evaluate("scrollTo(0, 0)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
        assert page.evaluate(OVERLAPS) == [], f"{path} at {width}"
        if "SCRIMP_SCREENSHOTS" in os.environ:
            title = quote(path.format(best=best), safe="") or "studies"
            folder = Path(os.environ["SCRIMP_SCREENSHOTS"])
            page.screenshot(path=folder / f"{title}-{scheme}-{width}.png", full_page=True)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 28)" if scheme == "dark" else "rgb(255, 255, 255)")
    tab.close()


OFFERED = """() => {
    const given = ['href', 'src', 'action', 'formaction', 'data-figure', 'data-fragment', 'data-live', 'xlink:href'];
    const addresses = [...document.querySelectorAll('*')].flatMap(one => given.map(name => one.getAttribute(name)));
    const outside = addresses.filter(one => one && new URL(one, location.href).origin !== location.origin);
    const buttons = [...document.querySelectorAll('.modebar-btn')].map(one => one.dataset.title || one.title || '');
    return [outside.filter(one => !one.startsWith('data:')), [...new Set(buttons)].sort()];
}"""


def test_no_address_outside_is_requested_or_offered(address: str, browser: Any) -> None:
    tab = Tab(browser, address)
    known = {"zoom", "pan", "autoscale", "reset axes", "download plot as a png"}
    for path in ("/study?name=staged", "/compare?study=staged", "/delete?study=staged", "/"):
        page = tab.open(path)
        for name in tab.figures()[:2]:
            tab.drawn(name)
        outside, buttons = page.evaluate(OFFERED)
        assert outside == [] and {words.split(" (")[0].lower() for words in buttons} <= known
        assert bool(buttons) == (path in ("/study?name=staged", "/compare?study=staged"))
    tab.close()


def test_a_browser_that_leaves_does_no_harm(address: str, browser: Any) -> None:
    tab = Tab(browser, address)
    tab.open("/study?name=staged")
    tab.context.close()  # while figures and the stream are on their way
    tab = Tab(browser, address)
    tab.open("/study?name=staged")
    tab.drawn("history")
    tab.close()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_axe_finds_nothing_on_any_page(
    address: str, url: str, browser: Any, scheme: str, width: int
) -> None:
    best = show(url, "staged")["best"]["trial"]
    others = (
        "/new",
        "/study?name=several",
        f"/study?name={quote(HOSTILE)}",
        "/compare?study=staged&study=fallen",
        f"/trials?study=staged&number={best}&number=0",
        "/delete?study=staged",
        "/study?name=nowhere",
    )
    rules, found = AXE.read_text(encoding="utf-8"), {}
    tab = Tab(browser, address, scheme, width)
    for path in (*(one.format(best=best) for one in PAGES), *others):
        page = tab.open(path)
        for name in tab.figures()[:4]:
            tab.drawn(name)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        page.evaluate(rules)
        violations = page.evaluate("axe.run()")["violations"]
        if violations:
            found[path] = [(one["id"], one["nodes"][0]["target"]) for one in violations]
    tab.errors = [error for error in tab.errors if "404" not in error]
    tab.close()
    assert found == {}
