"""The processes that the driver can run as: node driver, network driver, removal; with their probes and metrics."""
