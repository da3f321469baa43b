"""A tab of a real browser that writes down what goes wrong in it."""

import shutil
from typing import Any
from urllib.parse import urlsplit

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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


class Tab:
    """A page that remembers what went wrong in it and where it sent requests."""

    def __init__(
        self, browser: Any, address: str, scheme: str = "light", width: int = 1440
    ) -> None:
        self.address = address
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
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
        """Wait until a figure is drawn; one that is folded away is unfolded."""
        self.page.evaluate(
            "name => document.getElementById(name).closest('details')?.setAttribute('open', '')",
            f"figure-{name}",
        )
        figure = self.page.locator(f"#figure-{name}")
        figure.scroll_into_view_if_needed()
        self.page.wait_for_selector(f"#figure-{name}[data-drawn=yes]")
        return figure

    def figures(self) -> list[str]:
        """The names of the pictures that are shown."""
        names = "figures => figures.filter(one => !one.hidden).map(one => one.dataset.name)"
        found: list[str] = self.page.locator("figure[data-figure]").evaluate_all(names)
        return found

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
        assert self.hosts <= {urlsplit(self.address).netloc}
