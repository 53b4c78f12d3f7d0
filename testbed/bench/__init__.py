"""Measurements, each with a peer that is measured in the same run: the machine is noisy, a ratio is not."""
