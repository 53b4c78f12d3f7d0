"""Everything that is wrong with a driver file itself, and with the files that it names. Needs no cluster. Used by `all_checks`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed import folders
from testbed.binaries import lock_for
from testbed.binaries.lock import minors
from testbed.conformance import catalogue
from testbed.drivers import early_checks
from testbed.errors import TestbedError, did_you_mean
from testbed.models import driver_file as models
from testbed.models.driver_file import DriverFile
from testbed.onboarding.checks.finding import Blame, Finding


def file_findings(path: Path, kubernetes: str = "") -> tuple[DriverFile | None, list[Finding]]:
    """Return the driver file, None if it is not valid, and all that is wrong with it. Raise UsageError if it is not YAML.

    A chart is rendered for this version of Kubernetes; by default, for the newest.
    """
    found, problems = models.read_driver_file(path)
    mistakes = [Finding(Blame.FILE, each.what, each.path or "document", each.line) for each in problems]
    if found is None:
        return None, mistakes
    return found, [*mistakes, *unknown_requirements(found), *_named_files(found, kubernetes)]


def unknown_requirements(driver_file: DriverFile) -> Iterator[Finding]:
    """Yield the entries of spec.known whose requirement does not exist."""
    if not driver_file.known:
        return
    every = {entry.requirement.id for entry in catalogue.read([folders.data("suites")]).every}
    for number, each in enumerate(driver_file.known):
        if each.id not in every:
            hint = did_you_mean(each.id, every) or "`dra-testbed list` shows all"
            what = f"is {each.id!r}, but there is no such requirement; {hint}"
            yield Finding(Blame.FILE, what, f"spec.known[{number}].id")


def _named_files(driver_file: DriverFile, kubernetes: str) -> Iterator[Finding]:
    """Yield what is wrong with companions, and with manifests and image archives of all drivers."""
    try:
        companions = models.load_companions(driver_file)
    except TestbedError as wrong:
        yield Finding(Blame.FILE, str(wrong), "spec.companions")
        return
    version = lock_for(kubernetes or minors()[0]).kubernetes
    for each, key in ((driver_file, "spec.install"), *((each, "spec.companions") for each in companions)):
        try:
            early_checks.check_files([each], None, version)
            names = early_checks.wrong_pods(each, kubernetes=version) if each is driver_file else ()
        except TestbedError as failed:
            yield Finding(Blame.FILE, str(failed), key)
        else:
            yield from (Finding(Blame.FILE, one.what, one.key) for one in names)
