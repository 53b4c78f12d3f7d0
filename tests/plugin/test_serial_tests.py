"""Workers, leases, serial tests, the debugger, and test IDs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from testbed.conformance.events import read

Judge = Callable[..., Any]
_ORDINARY = "@required({0})\ndef test_ordinary_{0}(scenario):\n    scenario.apply('claims/two-cats.yaml')\n\n"
_DISRUPTIVE = """
from testbed.conformance import DISRUPTIVE

@required(8, tier=DISRUPTIVE)
def test_first(scenario):
    {first}

@required(9, tier=DISRUPTIVE)
def test_second(scenario):
    pass

"""
_BREAKS = "scenario.world.kube.objects.pop(('ResourceSlice', 'default', 'slice-node-1'))"


def _finished(run: Any) -> list[str]:
    return [each["id"] for each in read(run.folder) if each["event"] == "test-finished"]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_disruptive_tests_come_last_and_exclusive_ones_before_them(judge: Judge, workers: tuple[str, ...]) -> None:
    exclusive = "@required(7, exclusive=True)\ndef test_exclusive(scenario):\n    pass\n\n"
    ruled_out = "@required(6, tier=DISRUPTIVE, needs=(Capability.REBOOT_NODE,))\ndef test_reboot():\n    assert 0\n\n"
    tests = _DISRUPTIVE.format(first="pass") + ruled_out + exclusive + _ORDINARY.format(1) + _ORDINARY.format(2)
    run = judge(tests, *workers, in_subprocess=bool(workers))
    assert run.verdicts.pop("T-006") == "cluster-unsupported"
    assert {run.verdicts[name] for name in _finished(run)} == {"pass"}
    assert _finished(run)[-2:] == ["T-008", "T-009"]
    assert set(_finished(run)[:2]) <= {"T-001", "T-002", "T-007"}
    assert run.report.finished
    assert run.result.ret == 0
    assert len(_finished(run)) == 5


def test_workers_start_exclusive_tests_after_the_others(judge: Judge) -> None:
    many = "@required({0}{1})\n@pytest.mark.parametrize('n', range(40))\ndef test_{0}(scenario, n):\n    pass\n\n"
    run = judge(many.format(1, "") + many.format(2, ", exclusive=True"), "-n", "2", in_subprocess=True)
    begun = [each["id"] for each in read(run.folder) if each["event"] == "test-started"]
    assert len(begun) == 80
    assert begun.index("T-002") >= 40 - 2 * 2  # each worker has one test, and the next


def test_a_device_that_does_not_come_back_is_a_failure_and_blocks_the_next_test_if_nothing_may_be_repaired(
    judge: Judge,
) -> None:
    run = judge(_ORDINARY.format(1) + _DISRUPTIVE.format(first=_BREAKS))
    assert run.verdicts == {"T-001": "pass", "T-008": "fail", "T-009": "blocked"}
    assert "device no longer published: node-1/gpu-0" in run.row("T-008").message
    assert "it could not be repaired: device no longer published" in run.row("T-009").message
    assert "test_first" in run.row("T-009").message
    assert run.report.result == "failed"
    assert run.result.ret != 0


def test_the_next_test_runs_after_the_driver_was_repaired(judge: Judge) -> None:
    comes_back = """
from testbed.vocabulary.cluster import restoration
from tests.fakes import cluster

restoration._capabilities = lambda world: frozenset([Capability.CHANGE_DRIVER])
restoration._restart_driver = lambda world, before: cluster._publish(world.kube, "node-1", 4, "")
"""
    run = judge(comes_back + _DISRUPTIVE.format(first=_BREAKS))
    assert run.verdicts == {"T-008": "fail", "T-009": "pass"}
    assert (run.report.result, run.result.ret) == ("failed", 1)


def test_the_first_of_several_clean_up_failures_is_reported(judge: Judge) -> None:
    runs = "scenario.apply('claims/two-cats.yaml'); scenario.pod('pod-with-cats').should_run()"
    run = judge(_DISRUPTIVE.format(first=runs), "--patience", "0.01", fault="pods-never-end")
    assert run.verdicts == {"T-008": "fail", "T-009": "blocked"}
    assert "Traceback" not in run.output
    assert "all of kind Pod to be gone" in run.row("T-008").message


def test_serial_tests_do_not_run_after_a_failure_with_x(judge: Judge) -> None:
    bad = "@required(1)\ndef test_bad(scenario):\n    assert 0\n\n"
    run = judge(bad + _DISRUPTIVE.format(first="pass"), "-n", "2", "-x", in_subprocess=True)
    assert run.verdicts == {"T-001": "fail", "T-008": None, "T-009": None}


def test_where_nothing_is_published_tests_do_not_wait_for_devices(judge: Judge) -> None:
    """Each of the two tests waits for the other one, so both have to run at the same time."""
    tests = "".join(
        f"@required({n})\ndef test_{n}(scenario, request):\n"
        "    import pathlib, threading\n"
        f"    folder = pathlib.Path(str(request.config.rootpath))\n    (folder / 'began-{n}').touch()\n"
        f"    pauses = (threading.Event().wait(0.05) for _ in range(100))\n"
        f"    assert any((folder / 'began-{3 - n}').exists() or pause for pause in pauses)\n\n"
        for n in (1, 2)
    )
    run = judge(tests, "-n", "2", devices=0, in_subprocess=True)
    assert run.verdicts == {"T-001": "pass", "T-002": "pass"}


@pytest.mark.parametrize(
    "wanted",
    [("devices=3", "devices=3"), ("only_user_of='capacity'", "only_user_of='binding'")],
    ids=["many", "special"],
)
def test_workers_lease_no_more_devices_than_a_node_has(judge: Judge, wanted: tuple[str, str]) -> None:
    """Each test writes when it holds its lease. Two tests never hold it at the same time if they need three of four devices each.

    The same applies to two tests with devices of a class that is not reserved.
    """
    tests = "".join(
        f"@required({n}, {wanted[n % 2]})\ndef test_{n}(scenario, world, request):\n"
        "    import json, pathlib, threading, time\n"
        "    began = time.time()\n    threading.Event().wait(0.1)\n"
        "    log = pathlib.Path(str(request.config.rootpath), f'times-{request.node.name}')\n"
        "    log.write_text(json.dumps([began, time.time()]))\n\n"
        for n in range(1, 7)
    )
    run = judge(tests, "-n", "2", in_subprocess=True)
    assert set(run.verdicts.values()) == {"pass"}
    times = sorted(json.loads(each.read_text()) for each in run.folder.parent.glob("times-*"))
    assert len(times) == 6
    assert max(row.seconds for row in run.report.requirements) < times[-1][1] - times[0][0]  # waiting does not count
    assert all(ended <= began for (_, ended), (began, _) in itertools.pairwise(times))


def test_the_debugger_prints_how_to_look_at_the_namespace(judge: Judge, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        looker="class Looker:\n    def __init__(self, **_): pass\n    def reset(self): pass\n"
        "    def interaction(self, *_): print('looking')\n"
    )
    # In a subprocess, because pytest-timeout does nothing in a process in which a debugger was used.
    run = judge(
        "@required(1)\ndef test_it(scenario):\n    assert 0\n", "--pdb", "--pdbcls=looker:Looker", in_subprocess=True
    )
    assert "kubectl -n dra-t-001-" in run.output
    assert run.output.index("export KUBECONFIG=kubeconfig") < run.output.index("looking")


def test_auto_starts_no_workers_if_there_are_too_few_devices(judge: Judge) -> None:
    run = judge(_ORDINARY.format(1) + _ORDINARY.format(2), "-n", "auto", "-v", devices=3)
    assert run.verdicts == {"T-001": "pass", "T-002": "pass"}
    assert "created: " not in run.output  # xdist's message about its workers
    run.result.stdout.fnmatch_lines(["*::test_ordinary_1 PASSED (*.* s)*"])


def test_test_ids_can_be_pasted_and_last_failures_repeated(judge: Judge) -> None:
    bad = "@required(2)\n@pytest.mark.parametrize('n', [1, 2], ids=['one', 'two'])\ndef test_bad(scenario, n):\n    assert n == 1\n\n"
    first = judge(_ORDINARY.format(1) + bad)
    assert first.verdicts == {"T-001": "pass", "T-002": "fail"}
    again = judge(_ORDINARY.format(1) + bad, "--lf")
    assert {*_finished(again)} == {"T-002"}
    pasted = judge(_ORDINARY.format(1) + bad, "test_suite.py::test_bad[one]")
    assert pasted.row("T-002").tests == ("test_suite.py::test_bad[one]",)
    assert pasted.verdicts["T-002"] == "excluded"
    assert "passed, but some of its cases" in pasted.output
    assert "no requirement was tested" not in pasted.output


def test_workers_end_with_the_controller(judge: Judge) -> None:
    asks = (
        "import ctypes; number = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(number))"  # PR_GET_PDEATHSIG
    )
    run = judge(
        f"@required(1)\ndef test_it():\n    {asks}\n    assert number.value == 9\n", "-n", "1", in_subprocess=True
    )
    assert run.verdicts == {"T-001": "pass"}
