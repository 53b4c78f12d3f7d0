"""The word `pods`: several pods of which the same is expected, and what they have together."""

from __future__ import annotations

from testbed.drivers.published.slices import Device
from testbed.vocabulary.pods.container import Container
from testbed.vocabulary.pods.pod import Pod


class Pods(tuple[Pod, ...]):
    """Several pods of which the same is expected."""

    __slots__ = ()

    def should_run(self) -> Pods:
        """Wait until all of them run."""
        return Pods(pod.should_run() for pod in self)

    def should_recover(self) -> Pods:
        """Wait until all of them run, now that nothing keeps them from it any more."""
        return Pods(pod.should_recover() for pod in self)

    def should_succeed(self) -> Pods:
        """Wait until all of them have succeeded."""
        return Pods(pod.should_succeed() for pod in self)

    def should_be_gone(self) -> None:
        """Wait until none of them is there any more."""
        for pod in self:
            pod.should_be_gone()

    def delete(self) -> Pods:
        """Ask for the end of all of them."""
        return Pods(pod.delete() for pod in self)

    def containers(self, name: str) -> tuple[Container, ...]:
        """The container of that name in each of them."""
        return tuple(pod.container(name) for pod in self)

    def seen_by(self, container: str) -> dict[str, frozenset[Device]]:
        """The devices that the container of that name in each sees, by the pods' names."""
        return {pod.name: pod.container(container).seen_devices for pod in self}

    @property
    def all_devices(self) -> frozenset[Device]:
        """The devices of the claims of all of them together."""
        return frozenset(device for pod in self for device in pod.devices)

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that they are on."""
        return frozenset(pod.node for pod in self)

    @property
    def claims(self) -> frozenset[str]:
        """The names of all their claims."""
        return frozenset(claim.name for pod in self for claim in pod.claims.values())

    @property
    def devices(self) -> dict[str, frozenset[Device]]:
        """The devices of the claims of each, by the pods' names."""
        return {pod.name: pod.devices for pod in self}

    @property
    def seen_devices(self) -> dict[str, frozenset[Device]]:
        """The devices that the containers of each see, by the pods' names."""
        return {pod.name: pod.seen_devices for pod in self}
