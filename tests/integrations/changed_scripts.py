"""Scripts of other libraries on our pages, with the lines marked that scrimp changes."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHANGED = "  # changed"


def script_of(page: str) -> str:
    """The script on a page that marks its changed lines; at most 5 of some 20."""
    blocks = re.findall(r"```python no-run[^\n]*\n(.*?)```", (DOCS / page).read_text(), re.S)
    (script,) = [block for block in blocks if CHANGED in block]
    changed = [line for line in script.splitlines() if line.endswith(CHANGED)]
    assert 1 <= len(changed) <= 5, changed
    assert all("crimp" in line for line in script.splitlines() if line in changed)
    unmarked = [line for line in script.splitlines() if line not in changed]
    assert not any("crimp" in line for line in unmarked), unmarked
    return script
