"""A griffe extension: lines of docstrings that begin with >>> are code with its answer, not quotations of quotations."""

import re

import griffe

SESSION = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(griffe.Extension):
    """Fences interactive sessions."""

    def on_instance(self, *, obj, **rest):
        """Every object of the package, as it is read."""
        if obj.docstring is not None:
            obj.docstring.value = SESSION.sub(
                lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value
            )
