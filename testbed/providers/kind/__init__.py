"""Clusters that kind makes. Nodes are containers of Docker, Podman or nerdctl, whichever kind itself would choose."""

from testbed.providers.kind.provider import KindProvider

__all__ = ["KindProvider"]
