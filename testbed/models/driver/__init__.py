"""Sections of a driver file; `driver_file` assembles them."""
