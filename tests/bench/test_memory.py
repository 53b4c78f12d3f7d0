"""Memory is counted by PID namespace, so nothing outside a testbed's machines is in it."""

import os

from testbed.bench.memory import pss_mib


def test_a_process_counts_with_its_namespace() -> None:
    assert pss_mib([os.getpid()]) > 1


def test_no_machine_weighs_nothing() -> None:
    assert pss_mib([]) == 0
