"""Measure pinned to one core, then on all; write results/bench/table.md and rows.json."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from firl.bench.table import page
from firl.bench.theirs import missing


def main() -> None:
    """`python -m firl.bench`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    parser.add_argument("--repetitions", type=int, default=7, help="rounds for each median")
    arguments = parser.parse_args()
    for sentence in missing():
        print(sentence, file=sys.stderr)
    several = len(os.sched_getaffinity(0)) > 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, object]] = []
    for cores in ("one", "all") if several else ("one",):
        print(f"Measuring on {cores} of the cores …", file=sys.stderr)
        for row in _rows(cores, arguments.repetitions):
            rows.append(row)
            print(row["hidden"], row["batch_size"], row["microseconds"], file=sys.stderr)
    (arguments.out / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    table = page(rows, _processor())
    (arguments.out / "table.md").write_text(table)
    print(table)


def _rows(cores: str, repetitions: int) -> Iterator[dict[str, object]]:
    command = [sys.executable, "-m", "firl.bench.child"]
    command += ["--cores", cores, "--repetitions", str(repetitions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "an unnamed processor"


if __name__ == "__main__":
    main()
