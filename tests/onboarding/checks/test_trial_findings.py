"""Who is blamed for a first device that the probe does not show: the driver file, or the driver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.models.driver.probe import Probe
from testbed.models.driver_file import DriverFile, load_driver_file
from testbed.onboarding.checks.contents import Contents
from testbed.onboarding.checks.finding import Blame
from testbed.onboarding.checks.trial_findings import findings_of
from testbed.onboarding.checks.trials import Cause, FailedTrial, Seen, Trial
from tests.fakes import cluster
from tests.fakes.driver_files import with_values

FILE = load_driver_file(cluster.driver_path())
PLAIN = Contents({"PATH": "/bin"}, cpus=frozenset({"Cpus_allowed_list:\t0-1"}))
WITH_DEVICE = replace(PLAIN, variables={"PATH": "/bin", "GPU_DEVICE_GPU_0_UUID": "secret"})


def _seen(*ids: str, contents: Contents = PLAIN, code: int = 0, errors: str = "") -> Seen:
    printed = "".join(f"{name}={value}\n" for name, value in contents.variables.items())
    return Seen("with-0", frozenset(ids), printed, code, errors, contents)


def _trial(with_claim: Seen, without: Seen, node: str = "node-1", file: DriverFile = FILE) -> Trial:
    return Trial(FILE.device_class, node, file.probe, with_claim, without, frozenset({"a", "b"}))


def _file(**probe: object) -> DriverFile:
    made = Probe.model_validate(probe)
    return with_values(FILE, probe=made)


def test_a_device_that_only_the_container_with_the_claim_shows_is_right() -> None:
    assert findings_of([_trial(_seen("a", contents=WITH_DEVICE), _seen())], FILE) == []


def test_a_probe_that_misses_what_the_claim_adds_is_a_mistake_of_the_file() -> None:
    trials = [_trial(_seen(contents=WITH_DEVICE), _seen(), node) for node in cluster.NODES]
    (found,) = findings_of(trials, FILE)
    assert (found.blame, found.key) == (Blame.FILE, "spec.probe.env")
    assert (
        "on node-1 was prepared, but the probe shows no device in its container and in one without a claim"
        in found.what
    )
    assert "the claim adds environment variable GPU_DEVICE_GPU_0_UUID" in found.what
    assert "secret" not in found.what


def test_a_driver_that_adds_nothing_to_the_container_is_to_blame() -> None:
    (found,) = findings_of([_trial(_seen(), _seen())], FILE)
    assert (found.blame, found.requirement) == (Blame.DRIVER, "CLAIM-001")
    assert "the claim adds nothing to the container" in found.what


def test_a_driver_that_adds_the_device_only_on_one_node_is_to_blame_on_the_other() -> None:
    good = _trial(_seen("a", contents=WITH_DEVICE), _seen())
    bad = _trial(_seen(contents=replace(WITH_DEVICE, mounts=frozenset({"/x"}))), _seen(), "node-2")
    (found,) = findings_of([good, bad], FILE)
    assert (found.blame, found.requirement) == (Blame.DRIVER, "CLAIM-001")
    assert "on node-2" in found.what


def test_a_driver_whose_devices_a_container_without_a_claim_has_too_is_to_blame() -> None:
    both = _seen("a", "b")
    more = _seen("a", "b", contents=WITH_DEVICE)
    (found,) = findings_of([_trial(more, both)], FILE)
    assert found.blame is Blame.DRIVER
    assert "a container without a claim sees a, b too" in found.what


@pytest.mark.parametrize(
    ("file", "ids"),
    [
        (_file(command=("ls", "/sys/bus/pci/devices"), lines=r"(?P<id>\S+)"), ("a", "b")),
        (_file(env="(?P<id>PATH)"), ("PATH",)),
    ],
    ids=["a command lists the devices of the node", "what is shown is no device"],
)
def test_a_probe_that_shows_the_same_everywhere_is_a_mistake_of_the_file(
    file: DriverFile, ids: tuple[str, ...]
) -> None:
    (found,) = findings_of([_trial(_seen(*ids, contents=WITH_DEVICE), _seen(*ids), file=file)], file)
    assert (found.blame, found.key) == (Blame.FILE, file.probe.key)
    assert f"the probe shows {', '.join(ids)} in its container and in one without a claim" in found.what


def test_a_program_that_could_not_be_started_is_named_with_its_error() -> None:
    file = _file(command=("acme-smi",), lines=r"(?P<id>\S+)")
    with_claim = _seen(contents=WITH_DEVICE, code=127, errors="sh: acme-smi: not found")
    (found,) = findings_of([_trial(with_claim, _seen(code=127), file=file)], file)
    assert found.blame is Blame.FILE
    assert "could not be started in a container: sh: acme-smi: not found" in found.what


@pytest.mark.parametrize(
    ("cause", "blame", "requirement"),
    [
        (Cause.DRIVER, Blame.DRIVER, "CLAIM-001"),
        (Cause.ENVIRONMENT, Blame.ENVIRONMENT, ""),
        (Cause.NO_DEVICE, Blame.UNTRIED, ""),
        (Cause.UNKNOWN, Blame.UNTRIED, ""),
    ],
)
def test_a_pod_that_does_not_run_never_blames_the_file(cause: Cause, blame: Blame, requirement: str) -> None:
    (found,) = findings_of([FailedTrial(FILE.device_class, "node-1", cause, "pending")], FILE)
    assert (found.blame, found.requirement) == (blame, requirement)
    assert "on node-1 could not be used: pending" in found.what


def test_pinned_cpus_are_an_addition() -> None:
    pinned = replace(PLAIN, cpus=frozenset({"Cpus_allowed_list:\t1"}))
    assert pinned.additions_to(PLAIN) == ("other Cpus_allowed_list: 1",)


def test_a_program_that_the_driver_should_have_added_is_the_drivers_fault() -> None:
    file = _file(command=("acme-smi",), lines=r"(?P<id>\S+)", programFromDriver=True)
    with_claim = _seen(contents=WITH_DEVICE, code=127, errors="sh: acme-smi: not found")
    (found,) = findings_of([_trial(with_claim, _seen(code=127), file=file)], file)
    assert found.blame is Blame.DRIVER


def test_cpus_that_every_container_has_are_the_drivers_fault() -> None:
    file = _file(cpuset=True)
    (found,) = findings_of([_trial(_seen("0", "1", contents=WITH_DEVICE), _seen("0", "1"), file=file)], file)
    assert (found.blame, found.requirement) == (Blame.DRIVER, "CLAIM-001")


def test_a_probe_for_containers_without_a_claim_need_not_show_devices_of_a_claim() -> None:
    file = _file(env="(?P<id>GPU)", without={"env": "(?P<set>PATH)"})
    assert file.probe.without
    good = _trial(_seen("a", contents=WITH_DEVICE), _seen(), file=file)
    bad = replace(_trial(_seen("PATH", contents=WITH_DEVICE), _seen("PATH")), probe=file.probe.without)
    (found,) = findings_of([good, bad], file)
    assert (found.blame, found.key) == (Blame.NOTE, "spec.probe.without.env")


def test_a_node_without_a_free_device_is_a_note_if_another_node_has_one() -> None:
    good = _trial(_seen("a", contents=WITH_DEVICE), _seen())
    (found,) = findings_of([good, FailedTrial(FILE.device_class, "node-2", Cause.NO_DEVICE, "pending")], FILE)
    assert found.blame is Blame.NOTE
