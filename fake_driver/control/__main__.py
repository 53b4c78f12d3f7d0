"""Change the hardware of the driver in this pod, arm faults, and read its state. `dra-testbed hardware` runs this command.

It prints the response as JSON. It exits with 2 if the request is invalid, and with 3 if no driver answers.
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
from fake_driver.crash_points import CRASH_POINTS
from fake_driver.kubelet.socket_paths import SocketPaths

_TIMEOUT = 20.0  # seconds
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0}


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Send the request, print the response, and return the exit code."""
    given = vars(_parser().parse_args(arguments))
    path = Path(given.pop("socket") or _default_socket(environment))
    try:
        response = send_request(path, {key: value for key, value in given.items() if value is not None})
    except (OSError, ValueError) as failed:
        sys.stderr.write(f"no driver answers at {path}: {failed}\n")
        return 3
    if not response.pop("ok", False):
        sys.stderr.write(f"{response.get('error')}\n")
        return 2
    json.dump(response, sys.stdout)
    sys.stdout.write("\n")
    return 0


def send_request(path: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to the control socket and return the response."""
    with socket.socket(socket.AF_UNIX) as driver:
        driver.settimeout(_TIMEOUT)
        driver.connect(str(path))
        driver.sendall(json.dumps(request).encode() + b"\n")
        with driver.makefile("rb") as stream:
            response = json.loads(stream.readline())
    if not isinstance(response, dict):
        raise ValueError(f"the response is {response!r:.80}")  # noqa: TRY004 - the same error as for invalid JSON
    return response


def _default_socket(environment: Mapping[str, str]) -> Path:
    """Return the control socket of the driver in the same pod, which has the same environment."""
    driver = settings.from_environment(environment)
    return SocketPaths(driver.driver, driver.pod_uid, Path(driver.registry), driver.data).control


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fake_driver.control", description=__doc__)
    parser.add_argument("--socket", help="the driver's control socket [default: that of the driver in this pod]")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, about in (
        ("unplug", "remove a device, as if it were unplugged"),
        ("plug", "restore an unplugged device"),
    ):
        verbs.add_parser(verb, help=about).add_argument("device")
    _add_changes(verbs)
    _add_faults(verbs)
    verbs.add_parser("lose-cdi", help="remove all CDI files of this driver, as a reboot does")
    release = verbs.add_parser(
        "release", help="release the devices of a stale claim, which the kubelet will not unprepare"
    )
    release.add_argument("claim", metavar="CLAIM-UID")
    release.add_argument("--force", action="store_true", default=None, help="also if the claim exists and is allocated")
    verbs.add_parser("state", help="print the changes of the hardware and the armed faults")
    journal = verbs.add_parser("journal", help="print entries of the driver's journal")
    journal.add_argument(
        "--since", type=int, default=0, metavar="SEQ", help="only entries after the one with this number"
    )
    journal.add_argument("--limit", type=int, help="at most this number of entries, the oldest first")
    return parser


def _add_changes(verbs: Any) -> None:
    restore = verbs.add_parser("restore", help="undo changes")
    restore.add_argument("device", nargs="?", help="only of this device [default: of all devices]")
    one = verbs.add_parser("set", help="change attributes and capacities")
    one.add_argument("device")
    one.add_argument(
        "attributes", nargs="*", type=_pair, action=_CollectPairs, metavar="NAME=VALUE", help="the value as YAML"
    )
    one.add_argument("--capacity", type=_pair, action=_CollectPairs, metavar="NAME=AMOUNT", help="repeatable")
    one.add_argument(
        "--new",
        action="store_true",
        default=None,
        help="also add attributes and capacities that the device does not have",
    )
    taint = verbs.add_parser("taint", help="add a taint to a device")
    taint.add_argument("device")
    taint.add_argument("taint", type=_taint, action=_AddKeys, metavar="KEY[=VALUE]:EFFECT")
    untaint = verbs.add_parser("untaint", help="remove all taints with a key")
    untaint.add_argument("device")
    untaint.add_argument("key")
    health = verbs.add_parser("health", help="set the health of a device")
    health.add_argument("device")
    health.add_argument("status", metavar="healthy|unhealthy|unknown")
    health.add_argument("--message")


def _add_faults(verbs: Any) -> None:
    fault = verbs.add_parser("fault", help="arm a fault: calls that fail, are delayed or hang")
    fault.add_argument("call", metavar="prepare|unprepare")
    fault.add_argument(
        "--times", type=int, help="how many calls it applies to; 0 means until it is cleared [default: 1]"
    )
    fault.add_argument("--code", help="the whole call fails with this gRPC code, for example UNAVAILABLE")
    fault.add_argument("--message", help="the text of the error")
    fault.add_argument(
        "--delay", type=_seconds, metavar="2s", help="wait before the call is processed; without a unit, seconds"
    )
    fault.add_argument("--hang", action="store_true", default=None, help="wait until the caller cancels the call")
    fault.add_argument("--claim", metavar="UID|NAMESPACE/NAME", help="only calls with this claim")
    fault.add_argument("--device", help="only calls with a claim that has this device")
    verbs.add_parser("clear", help="disarm all faults and crashes")
    crash = verbs.add_parser("crash", help="end the process, like kill -9, when it reaches this point the next time")
    crash.add_argument("point", help=f"one of {', '.join(CRASH_POINTS)}")


class _CollectPairs(argparse.Action):
    """Collects pairs in a mapping."""

    def __call__(self, _parser: Any, namespace: Any, given: Any, _option: Any = None) -> None:
        """Add one or several pairs."""
        pairs = given if isinstance(given, list) else [given]
        if pairs:
            setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), **dict(pairs)})


class _AddKeys(argparse.Action):
    """Adds the keys of a mapping to the request."""

    def __call__(self, _parser: Any, namespace: Any, given: Any, _option: Any = None) -> None:
        """Add the keys."""
        delattr(namespace, self.dest)
        vars(namespace).update(given)


def _pair(text: str) -> tuple[str, Any]:
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        read = yaml.safe_load(value)
        json.dumps(read)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as invalid:
        raise argparse.ArgumentTypeError(f"{value!r} is not valid YAML; quote it: {invalid}") from invalid
    return name, read


def _taint(text: str) -> dict[str, str]:
    """Parse a taint in the format of `kubectl taint`."""
    start, found, effect = text.rpartition(":")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE:EFFECT or KEY:EFFECT")
    key, _, value = start.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 2s or 500ms")
    return float(found[1]) * _UNITS[found[2]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
