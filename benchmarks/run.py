"""Run a benchmark script by its name, or list all of them.

    python benchmarks/run.py                        list the scripts, one line each
    python benchmarks/run.py ask_tell sqlite        run one of them with its arguments
    python benchmarks/run.py ask_tell --help        show its documentation and options

The scripts import one another as ``benchmarks.FOLDER.NAME``, so the repository has to be on the
import path. This file puts it there and runs ``python -m benchmarks.FOLDER.NAME`` in its place,
with the interpreter that runs this file.
"""

import ast
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def find_scripts() -> dict[str, Path]:
    """Map the name of each script that can be run to its file."""
    files = sorted([*HERE.glob("*.py"), *HERE.glob("*/*.py")])
    scripts = {}
    for path in files:
        if path != HERE / "run.py" and "__main__" in path.read_text(encoding="utf-8"):
            scripts[path.parent.name if path.stem == "__main__" else path.stem] = path
    return scripts


def listing(scripts: dict[str, Path]) -> str:
    """Describe the scripts by the first lines of their docstrings, folder by folder.

    The scripts in peers/ are left out: other scripts start them.
    """
    lines = [str(__doc__).split("\n\n")[1]]
    shown = {name: path for name, path in scripts.items() if path.parent.name != "peers"}
    for folder in sorted({path.parent for path in shown.values()}):
        lines.append(f"\n{folder.relative_to(HERE.parent)}/")
        for name, path in shown.items():
            if path.parent == folder:
                text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
                lines.append(f"  {name:<22} {text.split(chr(10))[0]}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """List the scripts, or become the script that is named."""
    scripts = find_scripts()
    if not arguments or arguments[0] in ("-h", "--help"):
        print(listing(scripts))
        return
    name, *options = arguments
    if name not in scripts:
        sys.exit(f"no script is called {name!r}; the scripts are {', '.join(scripts)}")
    module = ".".join(scripts[name].relative_to(HERE.parent).with_suffix("").parts)
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE.parent), known)))
    os.execv(sys.executable, [sys.executable, "-m", module, *options])


if __name__ == "__main__":
    main(sys.argv[1:])
