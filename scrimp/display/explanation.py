"""The explanation of a trial as plain values: a summary of two sentences, and all decisions.

print(study.explain(7))             # the summary
print(study.explain(7).details)     # every decision with its data
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TypedDict

from scrimp.display.figures import config_words
from scrimp.json_values import Config, Json, JsonObject
from scrimp.space.html_table import words


class Competitor(TypedDict):
    """A candidate that was considered, with its score."""

    text: str
    score: float | None


@dataclass(frozen=True)
class DecisionReason:
    """One decision about a trial: the budget, the data it had, and the sentences."""

    decision: int
    title: str
    budget: float
    new: bool
    reason: str
    trials_seen: int
    reports_seen: int
    degraded: str
    record: JsonObject
    competitors: Sequence[Competitor] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The explanation of a trial: ``summary`` in a few sentences, ``decisions`` one by one."""

    trial: int
    status: str
    params: Config
    value: float | None
    budget: float
    headline: str
    method: str
    method_reason: str
    decisions: tuple[DecisionReason, ...] = field(default_factory=tuple)
    without_sources: Config | None = None
    summary: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return a plain JSON form."""
        return asdict(self)

    @property
    def text(self) -> str:
        """The summary as text."""
        return "\n".join([self.headline, f"  {config_words(self.params)}", *self.summary])

    @property
    def details(self) -> str:
        """The summary and every decision as text."""
        why = f" ({self.method_reason})" if self.method_reason else ""
        lines = [self.text, f"Method: {self.method}{why}"]
        for decision in self.decisions:
            lines.append(f"Decision {decision.decision}: {decision.title}")
            lines += [f"  {line}" for line in decision.lines]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return the summary for notebooks, with the decisions folded."""
        said = "".join(f"<p>{words(line, 2000)}</p>" for line in self.summary)
        told = "".join(
            f"<p><b>Decision {decision.decision}: {words(decision.title)}</b></p>"
            f"<ul>{''.join(f'<li>{words(line, 2000)}</li>' for line in decision.lines)}</ul>"
            for decision in self.decisions
        )
        params = words(config_words(self.params), 2000)
        folded = f"<details><summary>{len(self.decisions)} decisions</summary>{told}</details>"
        head = f"<p><b>{words(self.headline)}</b><br>{params}</p>"
        return f"{head}{said}{folded if told else ''}"
