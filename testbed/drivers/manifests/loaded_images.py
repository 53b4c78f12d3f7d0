"""Lets unchanged manifests of a vendor use images that were loaded into the nodes, under other names and with other pull policies. Pure."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator

from testbed.drivers.manifests.pods import containers, pod_specs
from testbed.images.names import complete, last_component
from testbed.kube.client import Object

_PULL_ALWAYS = "Always"
_USE_LOADED = "IfNotPresent"


def use_loaded_images(objects: Iterable[Object], loaded: Collection[str]) -> tuple[list[Object], list[str]]:
    """Return the objects with containers that use the loaded images, and a line for each change.

    A container gets the name of a loaded image with the same last component, if there is only one. A loaded image is not pulled.
    """
    changes: list[str] = []
    changed = [_changed(each, loaded, changes) if loaded else each for each in objects]
    return changed, list(dict.fromkeys(changes))


def unused_images(objects: Iterable[Object], loaded: Collection[str]) -> list[str]:
    """Return the loaded images that no container uses."""
    used = {complete(str(each.get("image", ""))) for found in objects for each in _containers(found)}
    return sorted(set(loaded) - used)


def _changed(found: Object, loaded: Collection[str], changes: list[str]) -> Object:
    made = copy.deepcopy(found)
    for each in _containers(made):
        where = f"container {each.get('name')} of {made['kind']} {made['metadata']['name']}"
        changes += [f"{where}: {change}" for change in _adjust(each, loaded)]
    return made


def _adjust(container: Object, loaded: Collection[str]) -> Iterator[str]:
    """Change the image and the pull policy of a container, and yield what was changed."""
    name = str(container.get("image", ""))
    image = _loaded_image(name, loaded)
    if not image:
        return
    if image != complete(name):
        container["image"] = image
        yield f"image {name} is {image}, which is loaded into the nodes"
    policy = container.get("imagePullPolicy")
    if policy == _PULL_ALWAYS or (not policy and image.endswith(":latest")):
        container["imagePullPolicy"] = _USE_LOADED
        yield f"imagePullPolicy {policy or f'{_PULL_ALWAYS} (of the tag latest)'} is {_USE_LOADED}"


def _loaded_image(name: str, loaded: Collection[str]) -> str:
    """Return the loaded image that a container means, or ''."""
    if not name or complete(name) in loaded:
        return complete(name) if name else ""
    same = [each for each in loaded if last_component(each) == last_component(name)]
    return same[0] if len(same) == 1 else ""


def _containers(found: Object) -> Iterator[Object]:
    for spec in pod_specs(found):
        yield from containers(spec)
