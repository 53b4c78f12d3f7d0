"""The provider `existing`: uses a cluster that exists already, given by kubeconfig and context, and leaves it as it found it."""

from testbed.providers.existing.provider import ExistingProvider

__all__ = ["ExistingProvider"]
