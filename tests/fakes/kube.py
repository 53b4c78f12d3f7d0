"""An API server in memory with the methods of testbed.kube.client.Kube, for tests of the vocabulary, drivers and the plugin.

`react` is called after every change, to act as controllers, scheduler and kubelets.
"""

from __future__ import annotations

import copy
import fnmatch
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from testbed.errors import ApiError
from testbed.kube.client import Object
from testbed.process import Completed

Key = tuple[str, str, str]


def _nothing(_kube: FakeKube) -> None:
    pass


class FakeKube:
    """Objects by kind, namespace and name.

    `deleted` and `applied` record requests in their order. `down` makes every request fail. `refuse` may raise the error for an object.
    """

    def __init__(self, react: Callable[[FakeKube], None] = _nothing) -> None:
        self.objects: dict[Key, Object] = {}
        self.deleted: list[str] = []
        self.since: list[str] = []
        self.down = False
        self.react = react
        self.log_texts: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.codes: dict[str, int] = {}
        self.exec_calls: list[tuple[str, str | None, tuple[str, ...]]] = []
        self.finalizers: dict[str, int] = {}
        self.applied: list[tuple[str, str, dict[str, Any]]] = []
        self.refuse: Callable[[Object], None] = lambda _manifest: None

    def request(self, method: str, path: str, **_: Any) -> Any:
        self._alive(f"{method} {path}")
        if path == "/metrics":
            raise ApiError(f"{method} {path}", 403, "Forbidden", "only administrators may read metrics")
        if path == "/readyz" or path.endswith("/proxy/healthz"):
            return "ok"
        assert path == "/version", path
        return {"gitVersion": "v1.37.0"}

    def apply(self, manifest: Object, **how: Any) -> Object:
        self._alive(f"PATCH {manifest['kind']}")
        self.refuse(manifest)
        self.applied.append((manifest["kind"], manifest["metadata"]["name"], how))
        if how.get("dry_run"):
            return copy.deepcopy(manifest)
        made = copy.deepcopy(manifest)
        made["metadata"].setdefault("namespace", "default")
        before = self.objects.get(_key(made), {"metadata": {}})["metadata"]
        made["metadata"].setdefault("uid", before.get("uid") or f"{'-'.join(_key(made))}-{len(self.deleted)}")
        self.objects[_key(made)] = {**self.objects.get(_key(made), {}), **made}
        self.react(self)
        return copy.deepcopy(made)

    create = apply

    def patch(self, target: Object, change: Object, **_: Any) -> Object:
        """Apply a merge patch to an existing object."""
        self._alive(f"PATCH {target['kind']}")
        self.objects[_key(target)] = _merged(self.objects[_key(target)], change)
        self.react(self)
        return copy.deepcopy(self.objects[_key(target)])

    def put(self, kind: str, name: str, namespace: str = "default", **content: Any) -> Object:
        """Add an object without calling `react`."""
        metadata = {"name": name, "namespace": namespace, **content.pop("metadata", {})}
        made = {"kind": kind, "metadata": metadata, **content}
        self.objects[_key(made)] = made
        return made

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        found = self.find(api_version, kind, name, namespace)
        if found is None:
            raise ApiError(f"GET {kind}/{name}", 404, "NotFound", f"{kind} {name} not found")
        return found

    def find(self, _api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        self._alive(f"GET {kind}/{name}")
        return copy.deepcopy(self.objects.get((kind, namespace or "default", name)))

    def list(self, api_version: str, kind: str, namespace: str | None = None, **selectors: str) -> list[Object]:
        self._alive(f"GET {kind}")
        found = [each for (k, n, _), each in sorted(self.objects.items()) if k == kind and namespace in (None, n)]
        return [{"apiVersion": api_version, **copy.deepcopy(each)} for each in found if _selected(each, selectors)]

    def delete(self, target: Object, **_: Any) -> None:
        self._alive(f"DELETE {target['kind']}")
        key = _key(target)
        if key in self.objects and not self.finalizers.get(key[2]):
            del self.objects[key]
            self.deleted.append(f"{key[0]}/{key[2]}")
            self.react(self)

    def logs(
        self, _namespace: str, pod: str, *, container: str | None = None, previous: bool = False, since: str = ""
    ) -> str:
        self._alive(f"GET log of {pod}")
        self.since.append(since)
        name = f"{pod}/{container}" + ("/previous" if previous else "")
        if name not in self.log_texts:
            raise ApiError(f"GET log of {pod}", 400, "BadRequest", f"container {container} has no log")
        return self.log_texts[name]

    def exec(
        self, _namespace: str, pod: str, _command: Sequence[str], *, container: str | None = None, **_: Any
    ) -> str:
        self._alive(f"EXEC {pod}")
        self.exec_calls.append((pod, container, tuple(_command)))
        return self.outputs.get(f"{pod}/{container}", "")

    def exec_unchecked(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None, **_: Any
    ) -> Completed:
        output = self.exec(namespace, pod, command, container=container)
        if any("dra-device-attributes" in word for word in command) and not output.startswith("{"):
            output = ""  # the container has no files with device metadata
        return Completed(tuple(command), self.codes.get(f"{pod}/{container}", 0), output, "")

    def resource_version(self, _api_version: str, kind: str) -> str:
        self._alive(f"GET {kind}")
        return "1"

    def watch(
        self, _api_version: str, kind: str, namespace: str | None = None, *, seconds: float, **selectors: str
    ) -> Iterator[Object]:
        """Yield the current objects, then call `react`."""
        self._alive(f"WATCH {kind}")
        assert seconds > 0
        for each in self.list("", kind, namespace, **selectors):
            yield {"type": "ADDED", "object": each}
        self.react(self)

    def _alive(self, request: str) -> None:
        if self.down:
            raise ApiError(request, 0, "", "no answer: connection refused")


def _key(manifest: Object) -> Key:
    return manifest["kind"], manifest["metadata"].get("namespace", "default"), manifest["metadata"]["name"]


def _merged(there: Any, change: Any) -> Any:
    if not isinstance(there, dict) or not isinstance(change, dict):
        return copy.deepcopy(change)
    merged = {**there, **{key: _merged(there.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def _selected(each: Object, selectors: dict[str, str]) -> bool:
    labels = each["metadata"].get("labels", {})
    wanted = [pair.split("=", 1) for pair in selectors.get("labelSelector", "").split(",") if pair]
    fields = [pair.split("=", 1) for pair in selectors.get("fieldSelector", "").split(",") if pair]
    return all(labels.get(key) == value for key, value in wanted) and all(
        fnmatch.fnmatch(str(_field(each, path)), value) for path, value in fields
    )


def _field(each: Object, path: str) -> Any:
    value: Any = each
    for part in path.split("."):
        value = (value or {}).get(part)
    return value
