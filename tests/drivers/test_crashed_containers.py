"""Whether a container crashed by its own process or for another reason."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.drivers.crashed_containers import find_crashes


def _pod(container: Any, *, limit: str = "", **status: str) -> Any:
    resources = {"limits": {"memory": limit}} if limit else {}
    return {
        "metadata": {"name": "it"},
        "spec": {"containers": [{"name": "driver", "resources": resources}]},
        "status": {"containerStatuses": [{"name": "driver", **container}], **status},
    }


def _ended(code: int, reason: str = "Error", **more: str) -> Any:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, **more}}}


def test_an_exit_code_is_by_the_process() -> None:
    (found,) = find_crashes(_pod(_ended(2)))
    assert (str(found), found.by_process) == ("container driver of pod it exited with code 2", True)


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun", "ContainerStatusUnknown", "Unknown"])
def test_the_exit_code_of_a_container_that_never_ran_is_not(reason: str) -> None:
    (found,) = find_crashes(_pod(_ended(128, reason, message="no space left")))
    assert (str(found), found.by_process) == (
        f"container driver of pod it exited with code 128 ({reason}): no space left",
        False,
    )


@pytest.mark.parametrize(
    ("limit", "detail"), [("64Mi", "(OOMKilled above its memory limit)"), ("", "(OOMKilled)")], ids=["limit", "none"]
)
def test_running_out_of_memory_is_by_the_process_only_above_its_own_limit(limit: str, detail: str) -> None:
    (found,) = find_crashes(_pod(_ended(137, "OOMKilled"), limit=limit))
    assert (str(found), found.by_process) == (f"container driver of pod it exited with code 137 {detail}", bool(limit))


def test_an_eviction_is_not_by_the_process() -> None:
    (found,) = find_crashes(_pod(_ended(137), reason="Evicted"))
    assert (str(found), found.by_process) == ("container driver of pod it exited with code 137 (Evicted)", False)


def test_a_crash_loop_is_judged_by_its_last_state() -> None:
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    codes = {"Completed": 0, "Error": 1, "StartError": 128}
    found = {
        reason: [
            each.by_process for each in find_crashes(_pod({**waiting, "lastState": _ended(code, reason)["state"]}))
        ]
        for reason, code in codes.items()
    }
    assert found == {"Completed": [True], "Error": [True], "StartError": [False]}


def test_a_completed_container_is_not_a_crash() -> None:
    assert find_crashes(_pod(_ended(0, "Completed"))) == []
