from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from testbed import folders
from testbed.conformance.events import read
from testbed.conformance.results import exit_code
from tests.fakes.cluster import vendor_file
from tests.plugin.example_suites import BAD, GOOD

Judge = Callable[..., Any]


def test_a_suite_that_passes_is_conformant(judge: Judge) -> None:
    run = judge(GOOD)
    assert run.verdicts == {"T-001": "pass"}
    assert run.report.result == "conformant"
    assert run.result.ret == 0
    assert "gpu.dra-testbed.example is conformant: MUST 1 of 1 (1 pass)" in run.output


def test_a_driver_with_one_fault_fails_the_requirement_that_covers_it(judge: Judge) -> None:
    run = judge(GOOD + BAD, fault="share-one-device")
    assert run.verdicts == {"T-001": "pass", "T-002": "fail"}
    assert run.report.result == "failed"
    assert run.result.ret == 1


def test_the_text_of_a_failure_is_short_and_begins_with_the_cause(judge: Judge) -> None:
    run = judge(GOOD, fault="no-pods-start")
    start = run.output.index("expected pod pod-with-cats to run", run.output.index("= FAILURES ="))
    shown = run.output[start : run.output.index("= verdict =")].splitlines()
    assert shown[1].startswith("  likely cause: the driver is not registered with the kubelet")
    assert "  requirement: T-001 (MUST) It works." in shown
    assert any(line.startswith("  evidence: ") for line in shown)
    assert shown.index("  requirement: T-001 (MUST) It works.") < 6
    assert "Traceback" not in run.output
    assert "def scenario" not in run.output


def test_a_driver_that_can_prepare_no_claim_fails_one_requirement_only(judge: Judge) -> None:
    run = judge(f"{GOOD}{BAD}", fault="no-pods-start")
    assert run.verdicts == {"T-001": "fail", "T-002": "blocked"}
    assert "no claim of the driver can be prepared: on node-1: " in run.output[: run.output.index("= FAILURES =")]
    assert "no claim of the driver can be prepared: see T-001" in run.row("T-002").message


def test_the_text_begins_with_the_cause_why_a_container_shows_no_device(judge: Judge) -> None:
    run = judge(BAD, fault="no-env")
    said = run.row("T-002").message.splitlines()
    assert said[0].startswith("expected container container1 of pod pod-with-cats to see gpu-1 of node-1; it sees no")
    assert said[1].startswith("  likely cause: the driver added nothing to the container")
    assert said[2].startswith("  last seen: the probe printed 1 line in container container1")
    assert "World(" not in run.output
    assert "→ likely cause: the driver added nothing to the" in run.output
    assert (run.folder / run.row("T-002").evidence / "probe/pod-with-cats.container1.txt").read_text() == "PATH=/bin\n"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_missing_parts_of_the_driver_are_printed_before_the_tests(judge: Judge, workers: str) -> None:
    run = judge("@required(1)\ndef test_it():\n    pass\n", "-n", workers, fault="slices-missing", in_subprocess=True)
    assert "note: gpu.dra-testbed.example publishes no ResourceSlice on node-1 and node-2" in run.output
    assert (
        run.output.count("note: no pod of the driver (app=fake-gpu-driver in namespace dra-testbed-driver) exists") == 1
    )


def test_other_assertions_are_explained_with_the_containers_that_show_no_device(
    judge: Judge,
) -> None:
    run = judge(BAD.replace("second.seen_devices == second.devices", "len(second.seen_devices) == 1"), fault="no-env")
    said = run.row("T-002").message
    assert said.startswith("expected len(second.seen_devices) to be 1; it is 0\n")
    assert "last seen: container container1 of pod pod-with-cats shows no device; the probe printed" in said


def test_evidence_is_collected_before_clean_up(judge: Judge) -> None:
    run = judge(GOOD, fault="no-pods-start")
    kept = run.folder / run.row("T-001").evidence
    pods = list(yaml.safe_load_all((kept / "pods.yaml").read_text()))
    assert [pod["metadata"]["name"] for pod in pods] == ["pod-with-cats"]
    assert "is not registered" in (kept / "events.txt").read_text()
    assert (kept / "resourceslices.yaml").exists()


def test_an_unreachable_api_server_is_an_error_not_a_failure(judge: Judge) -> None:
    run = judge(GOOD, fault="api-goes-away")
    assert run.verdicts == {"T-001": "error"}
    assert run.report.result == "incomplete"
    assert "not the driver" in run.output


def test_a_bug_in_a_suite_is_an_error_with_its_traceback(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_bug(scenario):\n    {}['nothing']\n")
    assert run.verdicts == {"T-001": "error"}
    assert "KeyError: 'nothing'" in run.output
    assert "test_suite.py:" in run.output


def test_low_patience_does_not_shorten_the_time_of_a_test(judge: Judge) -> None:
    run = judge(
        "@required(1)\ndef test_a(request):\n    assert request.node.get_closest_marker('timeout').args[0] >= 300\n"
    )
    assert run.verdicts == {"T-001": "pass"}


def test_a_test_that_hangs_is_a_timeout_and_the_clean_up_happens(judge: Judge) -> None:
    run = judge(
        "@pytest.mark.timeout(0.2, func_only=True)\n@required(1)\ndef test_hangs(scenario):\n    import threading\n"
        "    scenario.apply('claims/two-cats.yaml')\n    threading.Event().wait(30)\n\n"
        "def test_clean(world):\n    assert not [key for key in world.kube.objects if key[0] == 'Pod']\n"
    )
    assert run.verdicts == {"T-001": "timeout"}
    run.result.assert_outcomes(failed=1, passed=1)


def test_a_failure_of_the_cluster_is_not_the_drivers(judge: Judge) -> None:
    failing = (
        "from testbed.conformance import CLUSTER\n@required(2, about=CLUSTER)\ndef test_it():\n    assert 0, 'no'\n"
    )
    run = judge(GOOD + failing)
    assert run.verdicts == {"T-001": "pass", "T-002": "fail"}
    assert "blame: the cluster, not the driver" in run.output
    assert (run.report.result, run.report.cluster.result, run.result.ret) == ("conformant", "failed", 0)
    assert run.row("T-002").about == "cluster"


def test_a_mistake_in_a_file_of_the_user_blames_neither_driver_nor_cluster(judge: Judge) -> None:
    run = judge("from testbed.errors import UsageError\n@required(1)\ndef test_it():\n    raise UsageError('a typo')\n")
    assert run.verdicts == {"T-001": "error"}
    assert "blame: a file or an option of this run, or the harness; nothing is known about the driver" in run.output


def test_a_driver_that_is_not_registered_leaves_a_requirement_about_the_cluster_open(judge: Judge) -> None:
    about_cluster = GOOD.replace("required(1)", "required(2, about=CLUSTER)").replace("good", "cluster")
    run = judge(
        f"{GOOD}\nfrom testbed.conformance import CLUSTER\n{about_cluster}", "--maxfail=9", fault="no-pods-start"
    )
    assert run.verdicts == {"T-001": "fail", "T-002": "blocked"}
    assert "blame: the driver, not the cluster: other requirements judge that" in run.output
    assert (run.report.result, run.report.cluster.result) == ("failed", "incomplete")


def test_a_second_namespace_has_its_own_evidence_and_the_label(judge: Judge) -> None:
    run = judge(
        "@required(1)\ndef test_it(scenario, admin_scenario):\n    scenario.apply('claims/two-cats.yaml')\n"
        "    admin_scenario.apply('sharing/two-pods-one-claim.yaml')\n"
        "    name = admin_scenario.namespace\n"
        "    labels = admin_scenario.world.kube.get('v1', 'Namespace', name)['metadata']['labels']\n"
        "    assert labels['resource.kubernetes.io/admin-access'] == 'no'\n"
    )
    said = run.row("T-001").message
    assert said.startswith("expected labels['resource.kubernetes.io/admin-access'] to be 'no'; it is 'true'\n")
    kept = run.folder / run.row("T-001").evidence
    assert "pod-with-cats" in (kept / "pods.yaml").read_text()
    assert "name: first" in (kept / "admin_scenario/pods.yaml").read_text()


def test_a_precondition_that_the_driver_breaks_blocks_the_test(judge: Judge) -> None:
    run = judge("@pytest.fixture\ndef ready():\n    assert 0, 'no'\n\n@required(1)\ndef test_it(ready):\n    pass\n")
    assert run.verdicts == {"T-001": "blocked"}


def test_a_clean_up_that_the_driver_prevents_is_the_drivers_failure(judge: Judge) -> None:
    run = judge(GOOD, fault="pods-never-end")
    assert run.verdicts == {"T-001": "fail"}
    assert "pod pod-with-cats" in run.row("T-001").message


def test_a_failure_of_the_clean_up_decides_after_an_error_of_the_test_with_its_message(judge: Judge) -> None:
    run = judge(f"{GOOD}    {{}}['nothing']\n", "--maxfail=9", fault="pods-never-end")
    assert run.verdicts == {"T-001": "fail"}
    assert "all of kind Pod to be gone" in run.row("T-001").message


def test_all_cases_of_a_test_count(judge: Judge) -> None:
    run = judge("@required(1)\n@pytest.mark.parametrize('n', [1, 2])\ndef test_it(n):\n    assert n == 1\n")
    assert run.verdicts == {"T-001": "fail"}
    assert run.row("T-001").tests == ("test_suite.py::test_it[1]", "test_suite.py::test_it[2]")


def test_workers_give_the_same_verdicts(judge: Judge) -> None:
    run = judge(GOOD + BAD + "@required(3, needs=(Capability.REBOOT_NODE,))\ndef test_c():\n    pass\n", "-n", "2",
                fault="share-one-device", in_subprocess=True)  # fmt: skip
    assert run.verdicts == {"T-001": "pass", "T-002": "fail", "T-003": "cluster-unsupported"}
    assert (run.folder / run.row("T-002").evidence / "pods.yaml").exists()
    assert "assert" in run.row("T-002").message
    assert run.report.finished


def test_a_worker_that_crashes_is_an_error(judge: Judge) -> None:
    run = judge("@required(1)\ndef test_it():\n    import os; os._exit(9)\n", "-n", "1", in_subprocess=True)
    assert run.verdicts == {"T-001": "error"}
    assert "crashed" in run.row("T-001").message


def test_the_report_folder_has_every_file(judge: Judge) -> None:
    run = judge(GOOD)
    written = yaml.safe_load((run.folder / "report.yaml").read_text())
    assert written["kind"] == "DriverConformanceReport"
    assert written["environment"]["kubernetes"] == "v1.37.0"
    assert "ResourceHealthStatus" in written["environment"]["gatesAssumed"], "nobody may read this server's metrics"
    assert ElementTree.parse(run.folder / "junit.xml").getroot().tag == "testsuites"
    assert [each["event"] for each in read(run.folder)] == [
        "run-started", "selected", "test-started", "test-finished", "run-finished",
    ]  # fmt: skip


def test_hardware_is_synthetic_only_if_the_driver_file_says_so(judge: Judge, pytester: pytest.Pytester) -> None:
    assert judge(GOOD).report.environment.hardware == "synthetic"
    (pytester.path / "vendor.yaml").write_text(vendor_file())
    assert judge(GOOD, "--driver", "vendor.yaml").report.environment.hardware == "unknown"


@pytest.mark.parametrize(
    ("name", "suite", "fault"),
    [
        ("sharing", "test_shared_claim.py", "no-env"),
        ("sharing", "test_shared_claim.py", "second-sees-another"),
        ("registration", "test_every_node.py", "no-env"),
        ("registration", "test_every_node.py", "share-one-device"),
        ("claims", "test_two_cats.py", "share-one-device"),
    ],
)
def test_what_a_suite_asserts_can_fail(judge: Judge, name: str, suite: str, fault: str) -> None:
    text = (folders.data("suites") / name / suite).read_text()
    assert set(judge(text).verdicts.values()) == {"pass"}
    failed = judge(text, fault=fault)
    assert set(failed.verdicts.values()) == {"fail"}
    assert "assert" in failed.report.requirements[0].message


def test_a_second_run_in_the_same_folder_replaces_the_report(judge: Judge) -> None:
    first = judge(GOOD, fault="no-pods-start")
    assert (first.folder / "evidence").exists()
    second = judge(GOOD)
    assert second.verdicts == {"T-001": "pass"}
    assert not (second.folder / "evidence").exists()


_SECOND_TRY = """
TRIED = []

@required(1)
def test_it():
    TRIED.append(1)
    {first}

@required(2)
def test_other():
    pass
"""


@pytest.mark.parametrize(("first", "verdict"), [("assert len(TRIED) > 1", "flaky"), ("1 / (len(TRIED) - 1)", "pass")])
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_failure_before_a_pass_is_flaky_and_an_error_before_a_pass_is_not(
    judge: Judge, first: str, verdict: str, workers: str
) -> None:
    run = judge(_SECOND_TRY.format(first=first), "--reruns", "1", "-x", "-n", workers)
    assert run.verdicts == {"T-001": verdict, "T-002": "pass"}
    assert run.row("T-001").attempts == 2
    assert run.result.ret == (4 if verdict == "flaky" else 0)


def test_no_test_begins_after_one_that_found_nodes_under_pressure(judge: Judge) -> None:
    ruled_out = """
@required(3, needs=(Capability.REBOOT_NODE,))
def test_ruled_out(scenario):
    pass
"""
    run = judge(GOOD + BAD + ruled_out, fault="node-short")
    assert run.verdicts == {"T-001": "error", "T-002": None, "T-003": "cluster-unsupported"}
    said = run.row("T-001").message
    assert said.startswith("node node-1 failed during this test\n")
    assert "is short of disk: kubelet has disk pressure" in said
    assert "blame: the cluster, not the driver" in said
    assert run.report.result == "incomplete"
    assert exit_code(run.report) == 3


def test_a_failure_shows_no_credentials(judge: Judge) -> None:
    canary = secrets.token_hex(12)
    tests = f"""
@required(1)
def test_env(scenario):
    print("API_TOKEN=" + "{canary[:12]}" + "{canary[12:]}")
    from testbed.errors import CommandFailed
    raise CommandFailed(["env"], "exit 1", "DB_PASSWORD=" + "{canary[:12]}" + "{canary[12:]}" + chr(10) + "GPU=gpu-1")
"""
    run = judge(tests)
    assert canary not in run.output
    assert "GPU=gpu-1" in run.row("T-001").message
    assert not [each for each in run.folder.rglob("*") if each.is_file() and canary in each.read_text()]
