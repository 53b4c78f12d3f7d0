"""Reach an API server that is not ours. Each way in which that fails is one message, with the server and the context in it."""

from __future__ import annotations

import urllib3

from testbed.errors import ApiError, TestbedError, UsageError
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.kube.features import Features
from testbed.kube.kubeconfig import Access


def connect(access: Access) -> tuple[Kube, Features]:
    """The API as that user, and what it serves. No file is written."""
    try:
        kube = Kube(access)
        found = features.read(kube)
    except ApiError as refused:
        raise _explain(access, refused) from refused
    except UsageError as bad:
        if str(access) in bad.what:
            raise
        raise UsageError(f"{bad.what}, for {access}", hint=bad.hint) from bad
    except (KeyError, TypeError, ValueError) as strange:
        raise TestbedError(
            f"{access} answers, but not as a Kubernetes API server does", hint="is the address the right one?"
        ) from strange
    return kube, found


def _explain(access: Access, refused: ApiError) -> TestbedError:
    if refused.status == 401:
        why = access.expired() or refused.message
        hint = "get new ones from whoever gave you the kubeconfig, or choose another --context"
        return TestbedError(f"{access} does not accept these credentials: {why}", hint=hint)
    if isinstance(refused.__cause__, urllib3.exceptions.SSLError):
        hint = "is its certificate-authority in the kubeconfig, and does the address belong to its certificate?"
        return TestbedError(f"no trusted connection to {access}: {refused.__cause__}", hint=hint)
    if not refused.status:
        hint = "does the cluster run, and can it be reached from this host?"
        return TestbedError(f"nobody answers at {access}: {refused.message}", hint=hint)
    return TestbedError(f"{access} refuses us: {refused}", hint="may this user read /version and /apis?")
