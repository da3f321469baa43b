"""Command lines as objectives, with a configuration filled in as arguments.

    Command("python train.py")                          # adds all parameters: --lr 0.1 --layers 3
    Command("python train.py --lr {lr} -n {layers}")    # fills in the named ones
    Command("python train.py {params}")                 # passes the path of a JSON file with all

The command is not run by a shell; write ``bash -c "..."`` to use one. Double literal braces. The
argument of a parameter that a configuration does not have is left out together with the option
before it, here ``--momentum {momentum}``. True, False and None are written as in JSON. The other
placeholders are ``{python}`` (the interpreter that runs scrimp), ``{trial}``, ``{budget}``,
``{resume_step}`` and ``{checkpoint_dir}``.
"""

import json
import re
import shlex
import shutil
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scrimp.checks import nearest_name
from scrimp.errors import ObjectiveError

PLACEHOLDERS = ("params", "python", "trial", "budget", "resume_step", "checkpoint_dir")
"""Placeholders that are not parameters."""


INTERPRETER = re.compile(r"python[0-9.]*|bash|sh|zsh|Rscript|julia|node|perl|ruby")
"""Programs whose first argument is a script."""

PYTHONS = ("python", "python3")
"""Programs for which the interpreter of this process stands in where they are not on the PATH."""

FLAGS = ("-u", "-B", "-O", "-OO", "-E", "-s", "-S", "-I", "-q", "-v")
"""Options of Python that may precede the script."""


@dataclass(frozen=True)
class Command:
    """A script to run for each trial: one text, split as a shell would, or a list of words; run in
    ``folder`` if given."""

    line: str | Sequence[str]
    folder: str | Path | None = None

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments; ``{python}`` for a python that is not on the PATH."""
        try:
            words = tuple(shlex.split(self.line) if isinstance(self.line, str) else self.line)
        except ValueError as error:
            raise ObjectiveError(
                f"the command {self.line!r} cannot be split into words: {error}"
            ) from None
        if not words or not all(isinstance(word, str) for word in words):
            raise ObjectiveError(
                f"the command is {self.line!r}; write a program and its arguments: 'python train.py'"
            )
        if words[0] in PYTHONS and shutil.which(words[0]) is None:
            return ("{python}", *words[1:])
        return words

    def check(self, parameters: Collection[str]) -> None:
        """Raise `ObjectiveError` for unknown placeholders and missing programs, before any run."""
        for word in self.words:
            for name in _names(word):
                if name in PLACEHOLDERS and name in parameters:
                    raise ObjectiveError(
                        f"the command has {{{name}}}, which is both a parameter and a placeholder"
                        " of scrimp's own; rename the parameter"
                    )
                if name not in PLACEHOLDERS and name not in parameters:
                    valid = [*parameters, *PLACEHOLDERS]
                    near = nearest_name(name, valid)
                    hint = f"did you mean {{{near}}}?" if near else f"valid are {', '.join(valid)}"
                    raise ObjectiveError(
                        f"the command has {{{name}}}, and there is no such parameter; {hint}"
                    )
        program = self.words[0]
        if program != "{python}" and not self._found(program):
            where = "on the PATH" if "/" not in program else f"in {self.folder or 'this folder'}"
            raise ObjectiveError(
                f"the program {program!r} of the command does not exist or is not executable ({where})"
            )

        script, folder = self._script(), Path(self.folder or ".")
        if script is not None and not (folder / script).exists():
            raise ObjectiveError(
                f"the script {script!r} of the command does not exist (in {folder.resolve()});"
                " correct its name or give its path"
            )

    def unnamed(self, parameters: Collection[str]) -> list[str]:
        """Return the parameters that the arguments leave out: none if the command names all, or none.

        >>> Command("train --lr {lr}").unnamed(["lr", "decay"])
        ['decay']
        """
        names = {name for word in self.words for name in _names(word)}
        if "params" in names or names.isdisjoint(parameters):
            return []
        return [name for name in parameters if name not in names]

    def _script(self) -> str | None:
        """Return the file that an interpreter would run; None when the command names none."""
        program, *rest = self.words
        if program != "{python}" and not INTERPRETER.fullmatch(Path(program).name):
            return None
        for word in rest:
            if not word.startswith("-"):
                return None if _names(word) else _filled(word, {})
            if word not in FLAGS:
                return None  # such as -m or -c, which name no file
        return None

    def _found(self, program: str) -> bool:
        if "/" in program and not Path(program).is_absolute():
            program = str(Path(self.folder or ".").resolve() / program)
        return bool(_names(program)) or shutil.which(program) is not None

    def arguments(self, config: Mapping[str, object], places: Mapping[str, str]) -> list[str]:
        """Return the words for ``config``; ``places`` has the texts of `PLACEHOLDERS`.

        >>> Command("train --lr {lr} --momentum {momentum}").arguments({"lr": 0.1}, {})
        ['train', '--lr', '0.1']
        """
        texts = {**places, **{name: _text(value) for name, value in config.items()}}
        filled: list[str] = []
        named = False
        for word in self.words:
            names = _names(word)
            named = named or any(name == "params" or name not in PLACEHOLDERS for name in names)
            if all(name in texts for name in names):
                filled.append(_filled(word, texts))
            elif len(filled) > 1 and re.fullmatch("-[^=]*", filled[-1]) and word.startswith("{"):
                filled.pop()  # the option whose value would have followed
        if not named:
            for name, value in config.items():
                filled += [f"--{name}", _text(value)]
        return filled


def _names(word: str) -> list[str]:
    """Return the placeholders in a word; `ObjectiveError` for braces that are not placeholders."""
    try:
        parts = list(string.Formatter().parse(word))
    except ValueError as error:
        raise ObjectiveError(
            f"cannot read {word!r} in the command: {error}; put quotes around a placeholder with"
            " blanks, and double literal braces: {{ }}"
        ) from None
    for _, name, form, conversion in parts:
        if name is not None and (not name or form or conversion or "[" in name):
            raise ObjectiveError(
                f"cannot read {word!r} in the command: a placeholder is a name in braces, as"
                " {lr}; double literal braces: {{ }}"
            )
    return [name for _, name, _, _ in parts if name is not None]


def _filled(word: str, texts: Mapping[str, str]) -> str:
    pieces = string.Formatter().parse(word)
    return "".join(text + ("" if name is None else texts[name]) for text, name, _, _ in pieces)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
