"""Commands that are imported when they are called, so that ``scrimp --help`` starts at once.

The list of commands and what each does in a line stands in `scrimp.cli.main`; the module of a
command is loaded when somebody runs it, asks for its own help, or completes its options.
"""

import importlib
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from scrimp.checks import nearest_name

__all__ = ["lazy_group"]


def lazy_group(commands: Mapping[str, tuple[str, str]]) -> type[TyperGroup]:
    """A group of ``commands``: name to ("module:function", what it does); the function may be a
    Typer of subcommands."""

    class LazyGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return [*commands, *super().list_commands(ctx)]

        def get_command(self, ctx: Any, name: str) -> Any:
            """What a listing needs: the name and one line of help."""
            if name not in commands:
                return super().get_command(ctx, name)
            return TyperCommand(name, help=commands[name][1])

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """What an invocation needs: the command itself."""
            if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
                known = self.list_commands(ctx)
                near = nearest_name(args[0], known)
                hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(known)}."
                ctx.fail(f"No such command {args[0]!r}. {hint}")
            name, command, rest = super().resolve_command(ctx, args)
            if name is not None and name in commands:
                command = _loaded(name, commands[name][0])
            return name, command, rest

    return LazyGroup


def _loaded(name: str, path: str) -> Any:
    module, _, attribute = path.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        return typer.main.get_group(target)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(target)
    return typer.main.get_command(alone)
