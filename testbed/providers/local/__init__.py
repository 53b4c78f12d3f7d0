"""The local provider: a cluster of plain processes on this host. Linux and root, nothing else: no Docker, no registry."""

from testbed.providers.local.provider import LocalProvider

__all__ = ["LocalProvider"]
