"""What `scrimp bench objectives` prints: regrets at the end, and average ranks after 30, 60 and 100
trials."""

from collections.abc import Sequence
from typing import cast

from scrimp.bench.metrics import average_ranks, final_regrets, paired_interval, ranks, with_interval
from scrimp.bench.report import Summary, regret_summary
from scrimp.bench.results import RunRecord

__all__ = ["cut_at", "trade_off_summary"]

MOMENTS = (30, 60, 100)


def trade_off_summary(records: Sequence[RunRecord]) -> Summary:
    """Tasks by methods: the mean final regret of the hypervolume; then average ranks at each moment
    and how far each method is behind the best, with a 95% interval over runs."""
    header, rows = regret_summary(records)
    size = max((record["size"] for record in records), default=0)
    for moment in MOMENTS:
        if moment > size:
            continue
        cut = [cut_at(record, moment) for record in records]
        regrets = final_regrets(cut)
        averages = average_ranks(regrets)
        if not averages:
            continue
        rows.append([f"rank at {moment}", *(f"{averages[method]:.2f}" for method in header[1:])])
        best = min(averages, key=lambda method: averages[method])
        shared = sorted(set.intersection(*(set(cells) for cells in regrets.values())))
        places = [
            dict(zip(regrets, ranks([regrets[m][cell] for m in regrets]), strict=True))
            for cell in shared
        ]
        behind = []
        for method in header[1:]:
            interval = paired_interval([p[method] for p in places], [p[best] for p in places])
            behind.append("-" if method == best else with_interval(*interval, ".2f"))
        rows.append([f"behind at {moment}", *behind])
    return ["regret of hypervolume", *header[1:]], rows


def cut_at(record: RunRecord, moment: int) -> RunRecord:
    """The same run as it stood after so many trials."""
    return cast(RunRecord, {**record, "regret": record["regret"][:moment]})
