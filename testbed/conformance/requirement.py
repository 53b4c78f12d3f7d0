"""One sentence of the DRA contract, attached with `@requirement` to the test that checks it. Only the suites write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

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

# What a test may assume about the ordinary devices of a driver. A driver for which it is not true is not wrong.
GIVEN: Mapping[str, str] = {
    "local": "each device belongs to one node, so a claim that has it binds its pods to that node",
    "few": "no node can use more devices than one allocation can contain",
    "unshared": "a device is allocated to one claim at a time",
    "unconfigured": "a claim needs no configuration",
    "alone": "a claim needs no devices of other classes",
    "one-class": "all ordinary devices are of one class, so a claim for the class can get each of them",
    "rights": "the driver has the rights that its manifests grant it",
    "unforgeable": "what shows that a container has a device is nothing that each pod can set itself",
}
Count = int | Literal["all"]


@dataclass(frozen=True)
class Requirement:
    """What a driver, or a cluster with a driver, must do. `kubernetes` is the first minor version for which it holds.

    `devices` must be on one node, unless `spread` allows them on different nodes.
    `about` is who is judged: the driver or the cluster. An `exclusive` test uses all devices, so it runs alone. A test that uses only
    devices of one class of the driver file is the `only_user_of` that class. It runs alone if other tests can get these devices too.
    `mutants` are the wrong drivers and clusters on which the test fails; without any, `unproven` says why there are none.
    `gates` are the Kubernetes feature gates that must be on.
    `given` are the keys of GIVEN that the test assumes: without them it would blame a correct driver.
    `counts` are the numbers of devices that requests of the test have. Other requests have the smallest number that the driver accepts.
    `covers` are IDs of other test suites (suites/upstream.yaml) that check the same.
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
    counts: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UsageError(f"{self.id!r} is not a requirement ID", hint="write it as PREFIX-001")
        if not _MINOR.fullmatch(self.kubernetes):
            raise UsageError(
                f"{self.id}: {self.kubernetes!r} is not a minor version of Kubernetes", hint="write it as 1.36"
            )
        if not self.sentence.endswith("."):
            raise UsageError(f"{self.id}: {self.sentence!r} is not a sentence", hint="end it with a full stop")
        for word in self.given:
            if word not in GIVEN:
                raise UsageError(f"{self.id}: {word!r} is not a key of GIVEN", hint=did_you_mean(word, GIVEN))


def requirement(  # noqa: PLR0913 - the columns of the catalogue, all by name
    id: str,  # noqa: A002 - the usual name
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
    counts: tuple[Count, ...] = (),
    covers: tuple[str, ...] = (),
    unproven: str = "",
) -> Callable[[F], F]:
    """Attach a requirement to the test function below. The plugin turns it into markers."""
    made = Requirement(
        *(id, sentence, level, tier, source, devices, nodes, features, needs, kubernetes, mutants),
        *(about, exclusive, gates, covers, unproven, spread, only_user_of, given, counts),
    )

    def attach(function: F) -> F:
        setattr(function, _ATTRIBUTE, made)
        setattr(function, made.id, True)  # pytest's -k also matches the attributes of a function
        return function

    return attach


def requirement_of(function: object) -> Requirement | None:
    """Return the requirement that a test function checks, if any."""
    found = getattr(function, _ATTRIBUTE, None)
    return found if isinstance(found, Requirement) else None
