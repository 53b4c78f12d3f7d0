"""Ways to be wrong on purpose, a module for each family. `faults` puts one in place; nothing else knows them.

A mutant is a function from the right parts to the wrong ones, or a class that takes the place of `Driver`. Its name is its word, its first
sentence says what is wrong. To add one: write it in the module of its family, and name it in the tuple at that module's end.
"""

from fake_driver.mutants import (
    configuring,
    containers,
    features,
    preparing,
    publishing,
    reading,
    registering,
    remembering,
    telling,
    unpreparing,
)
from fake_driver.mutants.naming import Change, named

MUTANTS: dict[str, Change] = named(
    *registering.ALL,
    *publishing.ALL,
    *features.ALL,
    *reading.ALL,
    *configuring.ALL,
    *preparing.ALL,
    *containers.ALL,
    *remembering.ALL,
    *unpreparing.ALL,
    *telling.ALL,
)

__all__ = ["MUTANTS", "Change", "named"]
