"""`up` as a list of small steps over one context, and the way back: `down`, `sweep`, `status`. Called by the CLI, `run` and the plugin."""

from testbed.bringup.testbeds import Testbed, attach, bring_up, keep, tear_down, temporary_cluster_folder

__all__ = ["Testbed", "attach", "bring_up", "keep", "tear_down", "temporary_cluster_folder"]
