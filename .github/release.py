"""Prepare a release: does the tag agree with the version, and do the links of the README lead somewhere?

    python .github/release.py check v0.1.0
    python .github/release.py links owner/scrimp v0.1.0

`check` compares the tag with pyproject.toml and CITATION.cff. `links` makes the links of README.md
absolute, as the page of the package index needs them, and adds the project's URLs to pyproject.toml.
The repository's address is known only where it is hosted, so the workflow passes it.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return every place whose version is not that of the tag."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    found = {"pyproject.toml": project["version"], "CITATION.cff": cited[1] if cited else "missing"}
    return [
        f"{place} has version {version}, the tag is {tag}"
        for place, version in found.items()
        if tag != f"v{version}"
    ]


def absolute(text: str, repository: str, tag: str) -> str:
    """Return the text with absolute links: pictures as files, the rest as pages."""

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        host = "https://raw.githubusercontent.com" if picture else "https://github.com"
        page = f"{repository}/{tag}" if picture else f"{repository}/blob/{tag}"
        return f"{picture}[{words}]({host}/{page}/{path})"

    return LINK.sub(link, text)


def with_urls(text: str, repository: str) -> str:
    """Return pyproject.toml with the addresses of the project."""
    home = f"https://github.com/{repository}"
    table = {
        "Homepage": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
    }
    lines = [f'{name} = "{url}"' for name, url in table.items()]
    return text.replace(
        "[project.scripts]", "\n".join(["[project.urls]", *lines, "", "[project.scripts]"])
    )


def main(action: str, *words: str) -> None:
    if action == "check":
        wrong = problems(*words)
        if wrong:
            sys.exit("\n".join(wrong))
        return
    repository, tag = words
    for name, changed in (
        ("README.md", lambda text: absolute(text, repository, tag)),
        ("pyproject.toml", lambda text: with_urls(text, repository)),
    ):
        path = ROOT / name
        path.write_text(changed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
