"""`python -m fake_driver.control`: change the hardware of this pod's driver, or arm a fault. People and `dra-testbed hardware` run it.

Prints the answer as JSON. Ends with 2 where the request is wrong, and with 3 where no driver answers.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fake_driver import settings
from fake_driver.kubelet.socket_paths import SocketPaths

_PATIENCE = 20.0
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Ask, and print what came of it."""
    given = vars(_parser().parse_args(arguments))
    path = Path(given.pop("socket") or _place(environment))
    try:
        answer = send_request(path, {key: value for key, value in given.items() if value is not None})
    except (OSError, ValueError) as lost:
        sys.stderr.write(f"no driver answers at {path}: {lost}\n")
        return 3
    if not answer.pop("ok", False):
        sys.stderr.write(f"{answer.get('error')}\n")
        return 2
    json.dump(answer, sys.stdout)
    sys.stdout.write("\n")
    return 0


def send_request(path: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """One request and its answer."""
    with socket.socket(socket.AF_UNIX) as driver:
        driver.settimeout(_PATIENCE)
        driver.connect(str(path))
        driver.sendall(json.dumps(request).encode() + b"\n")
        with driver.makefile("rb") as stream:
            answer = json.loads(stream.readline())
    if not isinstance(answer, dict):
        raise ValueError(f"the answer is {answer!r:.80}")  # noqa: TRY004 - as when it is no JSON
    return answer


def _place(environment: Mapping[str, str]) -> Path:
    """Where the driver of the same pod listens: it has the same environment."""
    its = settings.from_environment(environment)
    return SocketPaths(its.driver, its.pod_uid, Path(its.registry), its.data).control


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fake_driver.control", description=__doc__)
    parser.add_argument("--socket", help="the driver's control socket; without it that of the driver in this pod")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, about in (
        ("unplug", "the device is gone"),
        ("plug", "an unplugged device is back"),
    ):
        verbs.add_parser(verb, help=about).add_argument("device")
    _add_changes(verbs)
    _add_faults(verbs)
    verbs.add_parser("lose-cdi", help="remove all CDI files of this driver, as a reboot does")
    release = verbs.add_parser("release", help="give back what a claim has that nobody will unprepare any more")
    release.add_argument("claim", metavar="CLAIM-UID")
    release.add_argument(
        "--force", action="store_true", default=None, help="also while the claim exists and is allocated"
    )
    verbs.add_parser("state", help="what is changed and armed")
    journal = verbs.add_parser("journal", help="what happened")
    journal.add_argument(
        "--since", type=int, default=0, metavar="SEQ", help="only what came after the entry of that number"
    )
    journal.add_argument("--limit", type=int, help="at most so many entries, the oldest first")
    return parser


def _add_changes(verbs: Any) -> None:
    restore = verbs.add_parser("restore", help="as the hardware file says again")
    restore.add_argument("device", nargs="?", help="without it: all devices")
    one = verbs.add_parser("set", help="change attributes and capacities")
    one.add_argument("device")
    one.add_argument(
        "attributes", nargs="*", type=_pair, action=_Mapping, metavar="NAME=VALUE", help="the value as YAML"
    )
    one.add_argument("--capacity", type=_pair, action=_Mapping, metavar="NAME=AMOUNT", help="repeatable")
    one.add_argument("--new", action="store_true", default=None, help="names may be new")
    taint = verbs.add_parser("taint", help="taint a device")
    taint.add_argument("device")
    taint.add_argument("taint", type=_taint, action=_Spread, metavar="KEY[=VALUE]:EFFECT")
    untaint = verbs.add_parser("untaint", help="take away all taints with a key")
    untaint.add_argument("device")
    untaint.add_argument("key")
    health = verbs.add_parser("health", help="say how a device is")
    health.add_argument("device")
    health.add_argument("status", metavar="healthy|unhealthy|unknown")
    health.add_argument("--message")


def _add_faults(verbs: Any) -> None:
    fault = verbs.add_parser("fault", help="calls that fail, wait or never end")
    fault.add_argument("call", metavar="prepare|unprepare")
    fault.add_argument("--times", type=int, help="so many calls; 0 means until it is cleared [default: 1]")
    fault.add_argument("--code", help="the whole call fails with this code of gRPC, such as UNAVAILABLE")
    fault.add_argument("--message", help="what the error says")
    fault.add_argument(
        "--delay", type=_seconds, metavar="2s", help="wait before anything else is done; without a unit seconds"
    )
    fault.add_argument("--hang", action="store_true", default=None, help="wait until the caller gives up")
    fault.add_argument("--claim", metavar="UID|NAMESPACE/NAME", help="only calls with this claim")
    fault.add_argument("--device", help="only calls with a claim that has this device")
    verbs.add_parser("clear", help="take all faults away")
    crash = verbs.add_parser("crash", help="die at a point, like kill -9, the next time that the driver is there")
    crash.add_argument("point")


class _Mapping(argparse.Action):
    """Pairs become a mapping."""

    def __call__(self, _parser: Any, namespace: Any, given: Any, _option: Any = None) -> None:
        """Add to what there is."""
        pairs = given if isinstance(given, list) else [given]
        if pairs:
            setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), **dict(pairs)})


class _Spread(argparse.Action):
    """A mapping becomes the request's own keys."""

    def __call__(self, _parser: Any, namespace: Any, given: Any, _option: Any = None) -> None:
        """Spread it."""
        delattr(namespace, self.dest)
        vars(namespace).update(given)


def _pair(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        read = yaml.safe_load(value)
        json.dumps(read)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as broken:
        raise argparse.ArgumentTypeError(f"{value!r} is no value: quote it as in YAML ({broken})") from broken
    return name, read


def _taint(text: str) -> dict[str, str]:
    """As `kubectl taint` writes it."""
    start, found, effect = text.rpartition(":")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE:EFFECT or KEY:EFFECT")
    key, _, value = start.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 2s or 500ms")
    return float(found[1]) * _UNITS[found[2]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
