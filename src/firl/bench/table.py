"""Rows of measurements as a page of Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def page(rows: Sequence[Row], processor: str) -> str:
    """Updates, steps and updates, and the floor."""
    versions = ", ".join(f"{name} {version}" for name, version in rows[0]["versions"].items())
    sections = [
        f"Written by `make bench` on {processor}; {versions}.\n"
        "Microseconds for each update, medians; × is how many times faster we are.",
        "## Update alone\n\n" + _against(rows, "update"),
        "## Step of Hopper-v5 and update\n\n" + _against(rows, "step + update"),
        "## Against the matrix products that an update must do\n\n" + _floor(rows),
    ]
    return "\n\n".join(sections) + "\n"


def _against(rows: Sequence[Row], what: str) -> str:
    header = [
        *_SIZES,
        "ours",
        "ours, bfloat16",
        "SB3",
        "× (bfloat16)",
        "SBX",
        "× (bfloat16)",
    ]
    lines = []
    for row in rows:
        times = row["microseconds"]
        ours, rounded = times[f"firl float32, {what}"], times[f"firl bfloat16, {what}"]
        cells = [_time(ours), _time(rounded)]
        for rival in ("SB3", "SBX"):
            theirs = times.get(f"{rival}, {what}")
            cells.append(_time(theirs))
            cells.append("–" if theirs is None else f"{theirs / ours:.1f} ({theirs / rounded:.1f})")
        lines.append([*_sizes(row), *cells])
    return _markdown(header, lines)


def _floor(rows: Sequence[Row]) -> str:
    header = [
        *_SIZES,
        "MFLOP",
        "products",
        "ours",
        "share",
        "products, bfloat16",
        "ours, bfloat16",
        "share",
        "ours with a reward network",
    ]
    lines = []
    for row in rows:
        times = row["microseconds"]
        cells = [f"{row['megaflops']:.1f}"]
        for precision in ("float32", "bfloat16"):
            floor, ours = times[f"products {precision}"], times[f"firl {precision}, update"]
            rate = row["megaflops"] / floor * 1e3
            cells += [f"{_time(floor)} ({rate:.0f} GFLOP/s)", _time(ours), f"{floor / ours:.0%}"]
        cells.append(_time(times["firl float32, update, reward network"]))
        lines.append([*_sizes(row), *cells])
    return _markdown(header, lines)


_SIZES = ["cores", "hidden", "batch"]


def _sizes(row: Row) -> list[str]:
    hidden = row["hidden"]
    return [str(row["cores"]), f"{hidden}×{hidden}", str(row["batch_size"])]


def _time(microseconds: float | None) -> str:
    return "–" if microseconds is None else f"{microseconds:.0f}"


def _markdown(header: list[str], lines: list[list[str]]) -> str:
    table = [header, ["---:"] * len(header), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in table)
