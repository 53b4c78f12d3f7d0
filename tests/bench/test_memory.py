"""The memory of all processes in PID namespaces."""

import os

from testbed.bench.memory import pss_mib


def test_all_processes_of_the_namespace_count() -> None:
    assert pss_mib([os.getpid()]) > 1


def test_without_namespaces_the_memory_is_zero() -> None:
    assert pss_mib([]) == 0
