"""Connects to the API server of an existing cluster. Each failure is one message with the server and the context."""

from __future__ import annotations

import urllib3

from testbed.errors import ApiError, TestbedError, UsageError
from testbed.kube import features
from testbed.kube.client import Kube
from testbed.kube.features import Features
from testbed.kube.kubeconfig import Access


def connect(access: Access) -> tuple[Kube, Features]:
    """Return a client for the API server and the features that it has. Writes no file."""
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
            f"{access} answers, but is not a Kubernetes API server", hint="check the address of the server"
        ) from strange
    return kube, found


def _explain(access: Access, refused: ApiError) -> TestbedError:
    if refused.status == 401:
        reason = access.expired() or refused.message
        hint = "get a new kubeconfig from the cluster's administrator, or choose another --context"
        return TestbedError(f"{access} does not accept the credentials ({reason})", hint=hint)
    if isinstance(refused.__cause__, urllib3.exceptions.SSLError):
        hint = "check certificate-authority in the kubeconfig, and that the server's certificate includes this address"
        return TestbedError(f"the TLS connection to {access} failed: {refused.__cause__}", hint=hint)
    if not refused.status:
        hint = "check that the cluster is running and can be reached from this host"
        return TestbedError(f"cannot reach {access}: {refused.message}", hint=hint)
    return TestbedError(
        f"{access} refused a request: {refused}", hint="check that this user may read /version and /apis"
    )
