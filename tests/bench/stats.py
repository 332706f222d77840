"""Medians, ratios and bars of the benchmark. Knows nothing of what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles


@dataclass(frozen=True)
class Row:
    """One measured ratio: `ours` over `floor`, both medians in `unit`; `spread` is the ratio's interquartile range."""

    part: str
    name: str
    ours: float
    floor: float
    ratio: float
    spread: tuple[float, float]
    bar: float
    unit: str
    n: int
    notes: Mapping[str, object] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.ratio <= self.bar


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """First and third quartile, ends included; a single value is both."""
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def pair_ratios(ours: Sequence[float], floor: Sequence[float]) -> list[float]:
    """Ratio of each round, whose two sides saw the same machine load."""
    if len(ours) != len(floor) or not ours:
        raise ValueError(f"rounds come in pairs: {len(ours)} of ours, {len(floor)} of the floor")
    return [a / b for a, b in zip(ours, floor, strict=True)]


def compare(
    part: str,
    name: str,
    ours: Sequence[float],
    floor: Sequence[float],
    *,
    bar: float,
    unit: str,
    by_pair: bool = False,
    notes: Mapping[str, object] | None = None,
) -> Row:
    """Ratio of the medians, or with `by_pair` the median of the rounds' ratios."""
    ratios = pair_ratios(ours, floor)
    ratio = median(ratios) if by_pair else median(ours) / median(floor)
    low, high = quartiles(ratios)
    return Row(part, name, median(ours), median(floor), ratio, (low, high), bar, unit, len(ours), notes or {})


def table(rows: Sequence[Row]) -> str:
    """Rows as aligned text, for people."""
    head = ("part", "what", "ours", "floor", "ratio", "quartiles", "bar", "", "n", "notes")
    body = [
        (
            row.part,
            row.name,
            f"{row.ours:.4g} {row.unit}",
            f"{row.floor:.4g} {row.unit}",
            f"{row.ratio:.3f}",
            f"{row.spread[0]:.3f} to {row.spread[1]:.3f}",
            f"{row.bar:g}",
            "pass" if row.passed else "FAIL",
            str(row.n),
            ", ".join(f"{key} {value}" for key, value in row.notes.items()),
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *body))
    return "\n".join(line.rstrip() for line in lines)


def as_json(rows: Sequence[Row], machine: Mapping[str, object]) -> str:
    """Rows as JSON, for programs and for comparing two runs."""
    return json.dumps(
        {"machine": dict(machine), "rows": [asdict(row) | {"passed": row.passed} for row in rows]}, indent=1
    )
