"""Devices as values: attributes, capacities, counters, sharing policies. Pure; every other package may use them."""
