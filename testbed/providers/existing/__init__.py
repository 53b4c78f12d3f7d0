"""The provider `existing`: a cluster that somebody else made and that stays theirs. It takes a kubeconfig and a context."""

from testbed.providers.existing.provider import ExistingProvider

__all__ = ["ExistingProvider"]
