"""One sentence of the DRA contract, tied to the test that checks it. The suites' authors use `@requirement`; all else reads the data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from testbed.errors import UsageError, did_you_mean
from testbed.models.requirement_enums import Level, Subject, Tier
from testbed.providers.base import Capability

F = TypeVar("F", bound=Callable[..., Any])

_ID = re.compile(r"[A-Z][A-Z0-9]*-\d{3}")
_MINOR = re.compile(r"1\.\d+")
_ATTRIBUTE = "dra_requirement"


MUST, SHOULD, MAY = Level.MUST, Level.SHOULD, Level.MAY
DRIVER, CLUSTER = Subject.DRIVER, Subject.CLUSTER
STATIC, WIRE, E2E, DISRUPTIVE = Tier.STATIC, Tier.WIRE, Tier.E2E, Tier.DISRUPTIVE

# What a test may take for granted of the driver's ordinary devices. Drivers of which it is not true are right as well.
GIVEN: Mapping[str, str] = {
    "local": "each device belongs to a node, so that a claim for it binds its pods to that node",
    "few": "no node can use more devices than one allocation can have",
    "unshared": "a device is allocated once, and to nobody else before it was given back",
}


@dataclass(frozen=True)
class Requirement:
    """What a driver, or a cluster with it, has to do. `kubernetes` is the first minor version that asks for it.

    `devices` have to be on one node, unless they `spread`: then each may be on another.
    `about` says whom a failure speaks of. `exclusive` is for tests that take all that there is, so that no other may run beside them;
    those that only take devices of a special class (`classes` of the driver file) are the `only_user_of` that class, and run alone where
    its devices are also had otherwise.
    `mutants` are drivers and clusters that it fails on; where there is none, `unproven` says why.
    `gates` are Kubernetes' feature gates without which there is nothing to judge.
    `given` are words of GIVEN: without them the test would blame a driver that is right.
    `covers` are the ids of others (suites/upstream.yaml) who ask the same.
    """

    id: str
    sentence: str
    level: Level
    tier: Tier
    source: str
    devices: int = 1
    nodes: int = 1
    features: tuple[str, ...] = ()
    needs: tuple[Capability, ...] = ()
    kubernetes: str = "1.34"
    mutants: tuple[str, ...] = ()
    about: Subject = Subject.DRIVER
    exclusive: bool = False
    gates: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    unproven: str = ""
    spread: bool = False
    only_user_of: str = ""
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UsageError(f"{self.id!r} is not the id of a requirement", hint="write it as PREFIX-001")
        if not _MINOR.fullmatch(self.kubernetes):
            raise UsageError(
                f"{self.id}: {self.kubernetes!r} is not a minor version of Kubernetes", hint="write it as 1.36"
            )
        if not self.sentence.endswith("."):
            raise UsageError(f"{self.id}: {self.sentence!r} is not a sentence", hint="end it with a full stop")
        for word in self.given:
            if word not in GIVEN:
                raise UsageError(f"{self.id}: nothing is given by {word!r}", hint=did_you_mean(word, GIVEN))


def requirement(  # noqa: PLR0913 - these are the columns of the catalogue, all by name
    id: str,  # noqa: A002 - it is what everybody calls it
    sentence: str,
    *,
    level: Level,
    tier: Tier,
    source: str,
    devices: int = 1,
    spread: bool = False,
    nodes: int = 1,
    features: tuple[str, ...] = (),
    needs: tuple[Capability, ...] = (),
    kubernetes: str = "1.34",
    mutants: tuple[str, ...] = (),
    about: Subject = Subject.DRIVER,
    exclusive: bool = False,
    only_user_of: str = "",
    gates: tuple[str, ...] = (),
    given: tuple[str, ...] = (),
    covers: tuple[str, ...] = (),
    unproven: str = "",
) -> Callable[[F], F]:
    """Tie a requirement to the test function below it. It is plain data until the plugin turns it into markers."""
    made = Requirement(
        *(id, sentence, level, tier, source, devices, nodes, features, needs, kubernetes, mutants),
        *(about, exclusive, gates, covers, unproven, spread, only_user_of, given),
    )

    def attach(function: F) -> F:
        setattr(function, _ATTRIBUTE, made)
        setattr(function, made.id, True)  # names that a function has are names for pytest's -k, too
        return function

    return attach


def requirement_of(function: object) -> Requirement | None:
    """The requirement that a test function checks, if it checks one."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Requirement) else None
