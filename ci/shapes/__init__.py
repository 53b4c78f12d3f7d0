"""Drivers whose devices, claims or probes are unlike those of the fake GPU driver. Each must be judged right, and its wrong twin caught.

`table` lists the shapes, `judging` runs one on a testbed of its own, `__main__` is `python -m ci.shapes`.
"""
