"""Writes a draft as a driver file with comments. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

from testbed.onboarding.discovery.draft import Draft
from testbed.onboarding.discovery.questions import Question

_WIDTH = 130
_NESTED = ("install", "nodes", "devices", "optional")
_COMMENTS = {
    "install": "Paths are relative to this file.",
    "devices": "The ordinary devices, with which most requirements are judged.",
    "probe": "How a container shows which devices it has.",
    "exempt": "What this kind of driver cannot have:",
    "features": "Optional parts of DRA that were seen.",
    "optional": "Special devices, each kind with a DeviceClass of its own.",
}


def write(name: str, found: Draft, questions: Collection[Question]) -> str:
    """Return the text of a driver file. `questions` are what could not be found out."""
    lines = [
        f"# The driver file of {found.spec['driver']}, begun by `dra-testbed driver init`. docs/driver-file.md describes all keys.",
        "# Check it: dra-testbed driver check --driver FILE. Judge the driver: dra-testbed run --driver FILE",
        "apiVersion: dra-testbed/v1alpha1",
        "kind: DriverFile",
        f"metadata: {{name: {name}}}",
        "spec:",
    ]
    for key, value in found.spec.items():
        lines += _section(key, _as_regexes(value) if key == "probe" else value, found.reasons, questions)
    for each in questions:
        if not _is_shown(each.key, found):
            lines += _comment(f"QUESTION about spec.{each.key}: {each.text}", 2)
    return "\n".join(lines) + "\n"


def _is_shown(key: str, found: Draft) -> bool:
    """Return True if a question is shown above its key."""
    section, _, rest = key.partition(".")
    return section in found.spec and (not rest or (section in _NESTED and rest in found.spec[section]))


def _section(key: str, value: Any, reasons: Mapping[str, str], questions: Collection[Question]) -> Iterator[str]:
    if key in _COMMENTS and value != {"installed": True}:
        yield from _comment(" ".join([_COMMENTS[key], *filter(None, [reasons.get(key)])]), 2)
        reasons = {name: text for name, text in reasons.items() if name != key}
    yield from _questions(key, questions, 2)
    if key not in _NESTED:
        yield from _entry(key, value, reasons.get(key, ""), 2)
        return
    yield f"  {key}:"
    for each, content in value.items():
        yield from _questions(f"{key}.{each}", questions, 4)
        yield from _entry(each, content, reasons.get(f"{key}.{each}", ""), 4)


def _entry(key: str, value: Any, reason: str, indent: int) -> Iterator[str]:
    """Yield a key with its value, and the reason behind it, or above it if the line would be too long."""
    line = f"{' ' * indent}{key}: {_flow(value)}"
    if reason and len(line) + len(reason) + 3 > _WIDTH:
        yield from _comment(reason, indent)
        reason = ""
    yield f"{line} # {reason}" if reason else line


def _questions(key: str, questions: Collection[Question], indent: int) -> Iterator[str]:
    for each in questions:
        if each.key == key:
            yield from _comment(f"QUESTION: {each.text}", indent)


def _comment(text: str, indent: int) -> Iterator[str]:
    prefix = f"{' ' * indent}# "
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False, break_on_hyphens=False
    )


def _as_regexes(probe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: Regex(value) if isinstance(value, str) else value for key, value in probe.items()}


class _Dumper(yaml.SafeDumper):
    """Dumps regular expressions in single quotes, as people write them."""


class Regex(str):
    """A regular expression."""

    __slots__ = ()


_Dumper.add_representer(
    Regex, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="'")
)


def _flow(value: Any) -> str:
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=10_000)
    return str(text).removesuffix("...\n").strip()
