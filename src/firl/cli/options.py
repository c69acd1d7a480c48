"""Options from dataclasses: whatever is misspelt or malformed gets one sentence, exit code 2."""

import contextlib
import dataclasses
import difflib
import io
from typing import Any, TypeVar

import tyro

from firl.errors import FirlError

Options = TypeVar("Options")


def parse(default: Options, words: list[str], usage: str) -> Options:
    """`default`, a dataclass, with what the command line changes of it."""
    known = {*option_names(default), "--help", "-h"}
    for word in words:
        name = word.split("=")[0]
        if name.startswith("--") and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
            hint = f"did you mean {near[0]}?" if near else f"{usage} --help lists them."
            raise FirlError(f"There is no option {name}: {hint}")
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(type(default), prog=usage, args=words, default=default)
    except SystemExit as stop:
        if stop.code:
            raise FirlError(_first_sentence(complaint.getvalue())) from None
        raise


def _first_sentence(boxed: str) -> str:
    """The message between the title and the first rule of the box that the parser draws."""
    lines = [line.strip("│| ") for line in boxed.splitlines()]
    message: list[str] = []
    for line in lines[1:]:
        if line and not line.strip("─-╭╮╰╯"):
            if message:
                break
        elif line:
            message.append(line)
    return " ".join(message) or "The options could not be read."


def option_names(node: Any, prefix: str = "--") -> list[str]:
    """Every option of a dataclass, nested ones dotted, switches with their `no-` form."""
    names: list[str] = []
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        dashed = field.name.replace("_", "-")
        if dataclasses.is_dataclass(value):
            # The whole configuration stands at the top, without a prefix of its own.
            names += option_names(value, prefix if field.name == "config" else f"{prefix}{dashed}.")
            continue
        names.append(prefix + dashed)
        if isinstance(value, bool):
            names.append(f"{prefix}no-{dashed}")
    return names
