"""Measure pinned to one core, then on all; write results/bench/table.md and rows.json."""

import argparse
import json
import os
import subprocess
import sys
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
    rows = []
    for cores in ("one", "all") if several else ("one",):
        print(f"Measuring on {cores} of the cores …", file=sys.stderr)
        rows += _rows(cores, arguments.repetitions)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    table = page(rows, _processor())
    (arguments.out / "table.md").write_text(table)
    print(table)


def _rows(cores: str, repetitions: int) -> list[dict[str, object]]:
    child = [sys.executable, "-m", "firl.bench.child"]
    child += ["--cores", cores, "--repetitions", str(repetitions)]
    finished = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "an unnamed processor"


if __name__ == "__main__":
    main()
