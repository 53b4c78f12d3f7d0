"""The logs of a testbed, gathered into a folder: of one that is there, or the kept ones of an `up` that failed."""

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

_MOST_NEAR = 6
_LONGEST_ERROR = 400
_SAME = 50  # so many characters alike are the same news
_ERROR = re.compile(
    r"(?:^|\s)([EF]\d{4} \d\d:.*)", re.MULTILINE
)  # as Kubernetes writes it, perhaps behind what a journal puts before


@contextlib.contextmanager
def of(name: str) -> Iterator[Path]:
    """A folder with the logs, for the time of the `with`."""
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
        cluster.collect_logs(Path(folder))
        yield Path(folder)


def listed(folder: Path) -> list[str]:
    """The names of all logs, as `read` takes them."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.log") if path.is_file())


def read(folder: Path, component: str) -> str:
    """One log by its name, with or without `.log`; or by the component's name, as `status` prints it."""
    names, meant = listed(folder), component.removeprefix("control-plane/")
    for candidate in names:
        if meant in (candidate, candidate.removesuffix(".log"), _component(candidate)):
            return (folder / candidate).read_text(errors="replace")
    near = [name for name in names if component and component in name][:_MOST_NEAR]
    hint = f"did you mean {' or '.join(near)}?" if near else did_you_mean(component, names)
    raise UsageError(f"there is no log {component}", hint=hint)


def _component(log: str) -> str:
    """A part of a node has its log beside the other logs: node-1/kubelet in node-1-kubelet.log."""
    node, _, part = log.removesuffix(".log").rpartition("-")
    return f"{node}/{part}"


def last_errors(folder: Path, known: str = "") -> list[str]:
    """What each kubelet complained of last, which is often why its node did not come; not what is `known` already."""
    found = {}
    for name in listed(folder):
        if name.endswith("kubelet.log"):
            errors = _ERROR.findall((folder / name).read_text(errors="replace"))
            found.update({name: errors[-1]} if errors else {})
    return [f"{name}: {_cut(error)}" for name, error in found.items() if not _says(known, error)]


def _cut(error: str) -> str:
    return error if len(error) <= _LONGEST_ERROR else error[:_LONGEST_ERROR].rsplit(" ", 1)[0] + " …"


def _says(known: str, error: str) -> bool:
    """Kubelets write quotes within quotes, which what the API tells does not have."""
    one, other = (re.sub(r'[\\"]', "", text) for text in (known, error))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size >= _SAME
