"""Who is to blame for a container that ended: its program, or what was done to it."""

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


def test_an_exit_code_is_the_programs_own() -> None:
    (found,) = find_crashes(_pod(_ended(2)))
    assert (str(found), found.own) == ("container driver of it ended with 2", True)


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun", "ContainerStatusUnknown", "Unknown"])
def test_the_code_of_a_container_that_never_ran_or_was_lost_is_not(reason: str) -> None:
    (found,) = find_crashes(_pod(_ended(128, reason, message="no space left")))
    assert (str(found), found.own) == (f"container driver of it ended with 128 ({reason}): no space left", False)


@pytest.mark.parametrize(
    ("limit", "said"), [("64Mi", "(OOMKilled beyond its memory limit)"), ("", "(OOMKilled)")], ids=["limit", "none"]
)
def test_memory_is_the_drivers_matter_within_a_limit_of_its_own_and_else_the_nodes(limit: str, said: str) -> None:
    (found,) = find_crashes(_pod(_ended(137, "OOMKilled"), limit=limit))
    assert (str(found), found.own) == (f"container driver of it ended with 137 {said}", bool(limit))


def test_what_was_done_to_the_whole_pod_is_not_its_containers_doing() -> None:
    (found,) = find_crashes(_pod(_ended(137), reason="Evicted"))
    assert (str(found), found.own) == ("container driver of it ended with 137 (Evicted)", False)


def test_a_crash_loop_is_judged_by_how_it_ended_last() -> None:
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    codes = {"Completed": 0, "Error": 1, "StartError": 128}
    found = {
        reason: [each.own for each in find_crashes(_pod({**waiting, "lastState": _ended(code, reason)["state"]}))]
        for reason, code in codes.items()
    }
    assert found == {"Completed": [True], "Error": [True], "StartError": [False]}


def test_a_good_end_is_no_bad_one() -> None:
    assert find_crashes(_pod(_ended(0, "Completed"))) == []
