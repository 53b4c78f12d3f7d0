"""Devices and their attributes, capacity, counters, request policies and health. All other packages may use them."""
