"""Drivers that are wrong on purpose, one module for each area. `selection` lists and applies them; no other package imports them.

A mutant is a function from the correct `Parts` to wrong ones, or a subclass of `Driver`. Its name follows from that of the function or
class: `publish_devices_twice` and `PublishDevicesTwice` are both `publish-devices-twice`. Its docstring describes it in docs/mutants.md.
To add one: write it in the module of its area and list it in `ALL` there.
"""
