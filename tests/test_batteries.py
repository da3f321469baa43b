"""Every part that ships is held to its contract: some test class inherits the battery for it.

A class of tests covers the parts that it names: in its code or its docstring, or in a function or
a value of its file that it uses.
"""

import ast
import functools
import re

from tests.syntax_trees import ROOT, folder, module_name, nodes, report

CONTRACTS = {
    "Acquisition": "AcquisitionBattery",
    "Executor": "ExecutorBattery",
    "Kernel": "KernelBattery",
    "Policy": "PolicyBattery",
    "Scheduler": "SchedulerBattery",
    "Storage": "StorageBattery",
    "Suggester": "SuggesterBattery",
    "Surrogate": "SurrogateBattery",
    "TargetStep": "TargetStepBattery",
}


@functools.cache
def parts() -> dict[str, set[str]]:
    """The public classes of the package that keep each contract and leave nothing open."""
    classes = {
        node.name: node
        for path, node in nodes(ast.ClassDef)
        if isinstance(node, ast.ClassDef) and folder(module_name(path)) != "testing"
    }

    def contracts(name: str) -> set[str]:
        if name not in classes:
            return {name} & set(CONTRACTS)
        # A generic contract is named with what it is of: WorkerSlots[Supervisor].
        plain = [
            base.value if isinstance(base, ast.Subscript) else base for base in classes[name].bases
        ]
        bases = {base.id for base in plain if isinstance(base, ast.Name)}
        return ({name} & set(CONTRACTS)).union(*map(contracts, bases))

    found: dict[str, set[str]] = {contract: set() for contract in CONTRACTS}
    for name, node in classes.items():
        if not name.startswith("_") and "abstractmethod" not in names_in(node):
            for contract in contracts(name):
                found[contract].add(name)
    return found


def names_in(node: ast.AST) -> set[str]:
    """Names that a piece of code uses, and those between backticks in its docstring."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        found |= set(re.findall(r"`(\w+)`", ast.get_docstring(node) or ""))
    return found


def covered() -> dict[str, set[str]]:
    """What the classes that inherit each battery name."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "Battery" not in text:
            continue
        top = ast.parse(text).body
        made = {node.name: names_in(node) for node in top if isinstance(node, ast.FunctionDef)}
        for node in top:
            if isinstance(node, ast.Assign):
                made |= {
                    one.id: names_in(node.value)
                    for one in node.targets
                    if isinstance(one, ast.Name)
                }
        classes = {node.name: node for node in top if isinstance(node, ast.ClassDef)}
        for node in classes.values():
            bases = {name for base in node.bases for name in names_in(base)}
            bases |= {name for base in bases & set(classes) for name in names_in(classes[base])}
            named = names_in(node)
            named |= {name for called in named & set(made) for name in made[called]}
            for battery in bases:
                found.setdefault(battery.replace("DurableStorage", "Storage"), set()).update(named)
    return found


def test_the_parts_are_found() -> None:
    """A few of each kind, so that the test below cannot pass for want of parts."""
    assert {"Matern52", "Sum"} <= parts()["Kernel"] and "ExactGP" in parts()["Surrogate"]
    assert all(len(found) >= 4 for found in parts().values())


def test_every_part_has_a_class_of_tests_that_inherits_its_battery() -> None:
    held = covered()
    offenders = [
        f"{part}: no class that inherits {battery} names it"
        for contract, kept in parts().items()
        for part in kept
        for battery in [CONTRACTS[contract]]
        if part not in held.get(battery, set())
    ]
    report(
        offenders,
        "These parts ship without the tests of their contract:",
        "write `class TestPart(TheBattery)` in the file of its tests (scrimp/testing has them).",
    )
