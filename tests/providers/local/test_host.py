"""What keeps a host from running a testbed, each with its cure."""

import dataclasses

from testbed.providers.local.host import Host, detect

GOOD = Host(
    linux=True,
    root=True,
    capabilities=2**41 - 1,
    cgroup_version=2,
    cgroup_writable=True,
    overlay=True,
    kernel=(6, 1),
    missing_tools=(),
)


def test_an_ordinary_host_has_no_problems_and_no_remarks() -> None:
    assert (GOOD.problems(), GOOD.remarks()) == ([], [])


def test_each_lack_is_a_problem_with_a_cure() -> None:
    lacking = {
        "Linux": dataclasses.replace(GOOD, linux=False),
        "root": dataclasses.replace(GOOD, root=False),
        "CAP_NET_ADMIN": dataclasses.replace(GOOD, capabilities=1 << 21),
        "cgroup": dataclasses.replace(GOOD, cgroup_writable=False),
        "ip is not installed": dataclasses.replace(GOOD, missing_tools=("ip",)),
    }

    for word, host in lacking.items():
        (problem,) = host.problems()
        assert word in problem.what
        assert problem.cure


def test_what_is_coped_with_is_a_remark_and_not_fatal() -> None:
    poor = dataclasses.replace(GOOD, overlay=False, cgroup_version=1, capabilities=(2**41 - 1) & ~(1 << 24))

    assert poor.problems() == []
    assert len(poor.remarks()) == 3
    assert not any(remark.fatal for remark in poor.remarks())


def test_detection_works_on_this_host() -> None:
    assert detect().linux
