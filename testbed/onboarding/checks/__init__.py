"""Checks of a driver file: of the file alone, of its names in a cluster, and of its probe with a first device on each node."""
