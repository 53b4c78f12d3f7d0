"""Drivers that are wrong on purpose, one module for each area. `selection` applies them; no other package imports them.

A mutant is a function from the correct `Parts` to wrong ones, or a subclass of `Driver`. Its name follows from the name of the function or
class; the first sentence of its docstring says what is wrong. To add one: write it in the module of its area and list it in `ALL` there.
"""

from fake_driver.mutants import (
    cdi,
    checkpoint,
    claims,
    device_health,
    device_metadata,
    device_status,
    opaque_configuration,
    prepare,
    registration,
    slice_features,
    slices,
    unprepare,
)
from fake_driver.mutants.naming import Mutation, named

MUTANTS: dict[str, Mutation] = named(
    *registration.ALL,
    *slices.ALL,
    *slice_features.ALL,
    *claims.ALL,
    *opaque_configuration.ALL,
    *prepare.ALL,
    *cdi.ALL,
    *device_metadata.ALL,
    *checkpoint.ALL,
    *unprepare.ALL,
    *device_status.ALL,
    *device_health.ALL,
)

__all__ = ["MUTANTS", "Mutation", "named"]
