"""Strict models of the files that users write (config, driver_file, hardware) and of what dra-testbed prints or writes (status, report).

No module here talks to a cluster or reads a file that it was not given.
"""
