"""Brings testbeds up (`steps`) and removes them again: `down`, `sweep`, `status`. Called by the CLI, by `run` and by the pytest plugin."""

from testbed.bringup.testbeds import Testbed, attach, bring_up, keep, tear_down, temporary_cluster_folder

__all__ = ["Testbed", "attach", "bring_up", "keep", "tear_down", "temporary_cluster_folder"]
