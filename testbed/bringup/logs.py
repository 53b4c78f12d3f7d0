"""The logs of a testbed, collected into a folder; also those of an `up` that failed. For `logs` and for errors of `up`."""

from __future__ import annotations

import contextlib
import difflib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from testbed.bringup import state
from testbed.errors import UsageError, did_you_mean
from testbed.providers import provider
from testbed.providers.base import Cluster
from testbed.redaction import redactor

_MAX_SUGGESTIONS = 6
_MAX_ERROR_LENGTH = 400
_SAME_ERROR = 50  # two errors with so many characters in common report the same
# An error or fatal line of klog, possibly after a journal's prefix.
_ERROR = re.compile(r"(?:^|\s)([EF]\d{4} \d\d:.*)", re.MULTILINE)


@contextlib.contextmanager
def collected(name: str) -> Iterator[Path]:
    """Yield a folder with the testbed's logs; it may be temporary."""
    record = state.read(name)
    kept = state.failed_logs(name)
    if record is None and kept.is_dir():
        yield kept
        return
    record = state.require(name)
    cluster = provider(record.provider).attach(name, state.cluster_folder(name))
    if cluster is None:
        raise UsageError(f"testbed {name} has no logs yet: it is {record.phase}")
    with tempfile.TemporaryDirectory(prefix="dra-testbed-logs-") as folder:
        collect(cluster, Path(folder))
        yield Path(folder)


def collect(cluster: Cluster, into: Path) -> None:
    """Collect the logs without credentials. A link, which could lead out of the folder, is removed."""
    cluster.collect_logs(into)
    redactor.redact_folder(into)


def listed(folder: Path) -> list[str]:
    """Return the names of all logs, as `read` takes them."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*.log") if path.is_file() and not path.is_symlink()
    )


def read(folder: Path, component: str) -> str:
    """Return one log, by its name with or without `.log`, or by the component's name in `status`."""
    names, meant = listed(folder), component.removeprefix("control-plane/")
    for candidate in names:
        if meant in (candidate, candidate.removesuffix(".log"), _component(candidate)):
            return (folder / candidate).read_text(errors="replace")
    near = [name for name in names if component and component in name][:_MAX_SUGGESTIONS]
    hint = f"did you mean {' or '.join(near)}?" if near else did_you_mean(component, names)
    raise UsageError(f"there is no log {component}", hint=hint)


def _component(log: str) -> str:
    """Return the component of a log: node-1/kubelet for node-1-kubelet.log."""
    node, _, part = log.removesuffix(".log").rpartition("-")
    return f"{node}/{part}"


def last_errors(folder: Path, known: str = "") -> list[str]:
    """Return the last error of each kubelet, which often explains why its node is not Ready. Skip errors that are `known` already."""
    found = {}
    for name in listed(folder):
        if name.endswith("kubelet.log"):
            errors = _ERROR.findall((folder / name).read_text(errors="replace"))
            found.update({name: errors[-1]} if errors else {})
    return [f"{name}: {_shortened(error)}" for name, error in found.items() if not _contains(known, error)]


def _shortened(error: str) -> str:
    return error if len(error) <= _MAX_ERROR_LENGTH else error[:_MAX_ERROR_LENGTH].rsplit(" ", 1)[0] + " …"


def _contains(known: str, error: str) -> bool:
    """Compare without quotes: kubelets escape them in their logs, but not in the API."""
    one, other = (re.sub(r'[\\"]', "", text) for text in (known, error))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size >= _SAME_ERROR
