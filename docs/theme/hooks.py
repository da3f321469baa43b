"""What MkDocs does besides its own: examples of the repository are pages' neighbours, and fences lose their test label.

On a code host ``../examples/demo.py`` is a link to the file. The site has no such folder above it, so the examples that a
page names are copied into the site and the links lead there.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>examples/[^)#]+)\)")
TEXT = {".py", ".toml"}


def on_files(files, config):
    """Add the examples, as plain files."""
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.suffix in TEXT:
            name = path.relative_to(ROOT).as_posix()
            files.append(
                File.generated(config, f"{name}.txt", content=path.read_text(encoding="utf-8"))
            )
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links to examples to their copies, and drop the label that keeps a block out of the tests."""
    here = posixpath.dirname(page.file.src_uri)

    def inside(found):
        path = found["path"].rstrip("/")
        if (ROOT / path).is_dir():
            path += "/pyproject.toml"
        return f"]({posixpath.relpath(path, here or '.')}.txt)"

    return OUTSIDE.sub(inside, markdown).replace("```python no-run", "```python")
