"""Demonstrations from .csv: a row for each observation, episodes one after the other."""

import csv
from collections.abc import Iterator
from pathlib import Path

from firl.errors import FirlError
from firl.expert.demonstrations import Demonstrations

_NOT_OBSERVED = ("action", "reward", "return", "terminat", "truncat", "done")
"""How a column's name begins that is no coordinate of an observation."""

Row = tuple[int, list[str]]
"""A line's number in the file, from 1, and its cells."""


def read_csv(path: Path) -> Demonstrations:
    """Observations in the order of the columns; a column named `episode` separates episodes.

    Without that column the file is one episode. The first line may name the columns.
    """
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise FirlError(f"{path}: the file is empty: write a row for each of s_0 … s_L.")
    cells = ["episode" if cell.strip().lower() == "episode" else cell.strip() for cell in first[1]]
    header = cells if "episode" in cells or not any(map(_is_number, cells)) else None
    names = header or [str(column) for column in range(len(cells))]
    _check_names(path, names)
    if header is None and len(names) > 1 and cells == names:
        raise FirlError(
            f"{path}: its first line counts the columns, as pandas does where they have no names: "
            "leave it out (header=False), or name them."
        )
    split = names.index("episode") if "episode" in names else None
    episodes: dict[str, list[list[float]]] = {}
    current = None
    for line, cells in rows if header else _chain(first, rows):
        if len(cells) != len(names):
            raise FirlError(
                f"{path}: line {line} has {len(cells)} cells, but the first line has {len(names)}: "
                "write as many in each."
            )
        name = "0" if split is None else cells[split].strip()
        if name != current and name in episodes:
            raise FirlError(
                f"{path}: episode {name!r} comes back in line {line} after another one: put its "
                "rows together."
            )
        current = name
        episodes.setdefault(name, []).append(
            [
                _number(path, line, names[column], cell)
                for column, cell in enumerate(cells)
                if column != split
            ]
        )
    if not episodes:
        raise FirlError(f"{path}: there is a header and no rows: write one for each of s_0 … s_L.")
    return Demonstrations(episodes.values(), source=str(path))


def _rows(path: Path) -> Iterator[Row]:
    """Lines that are not blank. A byte-order mark, which spreadsheets write, is no part of them."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield reader.line_num, cells
    except (UnicodeDecodeError, csv.Error) as error:
        raise FirlError(
            f"{path}: it is not numbers with commas between them ({error}): save it as CSV in "
            "UTF-8."
        ) from error


def _chain(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _check_names(path: Path, names: list[str]) -> None:
    for column, name in enumerate(names):
        if not name:
            raise FirlError(
                f"{path}: its column {column} has no name, as the row numbers that pandas writes "
                "have none: leave it out (index=False), or name it."
            )
        if name.lower().startswith(_NOT_OBSERVED):
            raise FirlError(
                f"{path}: its column {name!r} is no coordinate of an observation, and a CSV has "
                "room for nothing else: leave it out, or save an .npz."
            )
        if name.lower().startswith("episode") and name != "episode":
            raise FirlError(
                f"{path}: its column {name!r} would be read as a coordinate: name it episode if it "
                "says which episode a row is of, or leave it out."
            )
    if names.count("episode") > 1 or names == ["episode"]:
        raise FirlError(
            f"{path}: its columns are {', '.join(names)}: write one named episode and at least one "
            "coordinate."
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(path: Path, line: int, column: str, cell: str) -> float:
    if not _is_number(cell):
        raise FirlError(
            f"{path}: line {line}, column {column}, holds {cell!r}, which is no number: repair it "
            "or leave the episode out."
        )
    return float(cell)
