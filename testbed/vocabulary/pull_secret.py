"""Copies the driver's pull secret into the namespaces of scenarios, so that test pods can pull their images. Used by scenarios."""

from __future__ import annotations

from testbed.errors import UsageError
from testbed.kube.client import Object
from testbed.redaction import redactor
from testbed.vocabulary.world import World


def pull_secret_for(world: World, namespace: str) -> Object | None:
    """Return a copy of the pull secret for a namespace, or None if the driver file names none. The redactor gets its values."""
    name, source = world.driver_file.pull_secret, world.driver_file.pods.namespace
    if not name:
        return None
    found = world.kube.find("v1", "Secret", name, source)
    if found is None:
        raise UsageError(
            f"spec.install.pullSecret: there is no Secret {name} in namespace {source}",
            hint=f"kubectl --namespace {source} create secret docker-registry {name} …",
        )
    redactor.register_secret(found)
    content: Object = {key: found[key] for key in ("type", "data") if key in found}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, **content}
