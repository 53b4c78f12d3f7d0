"""The roles in which the driver runs: node driver, network driver and removal; with their probes and metrics."""
