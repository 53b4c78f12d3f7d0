"""Several pods that are expected to behave alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from testbed.drivers.published.slices import Device
from testbed.vocabulary.checked_sets import CheckedSet, NothingToCompare
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.pod import Pod


class Pods(tuple[Pod, ...]):
    """Several pods. Verbs apply to each; properties are of all together or by the pods' names."""

    __slots__ = ()

    def __new__(cls, pods: Iterable[Pod]) -> Self:
        """Return the pods. Raise NothingToCompare if there is none: every comparison of their devices would pass."""
        made = super().__new__(cls, pods)
        if not made:
            raise NothingToCompare("expected pods to judge, but there is none")
        return made

    def should_run(self) -> Pods:
        """Wait until all run."""
        return Pods(pod.should_run() for pod in self)

    def should_be_scheduled(self) -> Pods:
        """Wait until the scheduler has bound all to nodes."""
        return Pods(pod.should_be_scheduled() for pod in self)

    def should_recover(self) -> Pods:
        """Wait until all run, after the cause of earlier failures was removed."""
        return Pods(pod.should_recover() for pod in self)

    def should_succeed(self) -> Pods:
        """Wait until all have succeeded."""
        return Pods(pod.should_succeed() for pod in self)

    def should_be_gone(self) -> None:
        """Wait until none exists any more."""
        for pod in self:
            pod.should_be_gone()

    def delete(self) -> Pods:
        """Delete all without waiting."""
        return Pods(pod.delete() for pod in self)

    def containers(self, name: str) -> tuple[Container, ...]:
        """Return the container of this name in each pod."""
        return tuple(pod.container(name) for pod in self)

    def seen_by(self, container: str) -> dict[str, CheckedSet[Device]]:
        """Return the devices that the container of this name sees in each pod, by the pods' names."""
        return {pod.name: pod.container(container).seen_devices for pod in self}

    def printed_by(self, container: str) -> dict[str, CheckedSet[Device]]:
        """Return the devices in the log of the container of this name in each pod, by the pods' names."""
        return {pod.name: pod.container(container).printed_devices for pod in self}

    @property
    def all_devices(self) -> CheckedSet[Device]:
        """Return the devices that are allocated to all pods together."""
        return CheckedSet(device for pod in self for device in pod.devices)

    @property
    def nodes(self) -> CheckedSet[str]:
        """Return the nodes that the pods are bound to."""
        return CheckedSet(pod.node for pod in self)

    @property
    def claims(self) -> CheckedSet[str]:
        """Return the names of all claims."""
        return CheckedSet(claim.name for pod in self for claim in pod.claims.values())

    @property
    def devices(self) -> dict[str, CheckedSet[Device]]:
        """Return the devices that are allocated to each pod, by the pods' names."""
        return {pod.name: pod.devices for pod in self}

    @property
    def seen_devices(self) -> dict[str, CheckedSet[Device]]:
        """Return the devices that the probe finds in each pod, by the pods' names."""
        return {pod.name: pod.seen_devices for pod in self}
