"""A small API server in this process, with the reads, writes, server-side apply, selectors and watches that the driver uses."""

import contextlib
import copy
import http.server
import json
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Object = dict[str, Any]

DRIVER = "gpu.dra-testbed.example"


class FakeApi:
    """Nodes, claims and slices, with resource versions, conflicts and watches like those of a real API server."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], Object] = {}
        self.slices: dict[str, Object] = {}
        self.writes: list[str] = []
        self.dry_runs: list[str] = []  # the slices of dry runs
        self.versions = ["v1"]
        self.classes: dict[str, str] = {}
        self.nodes: dict[str, str] = {}  # UIDs that differ from the default ones
        self.minor = "37"
        self.down = False
        self.refuse: Callable[[str, str], tuple[int, str] | None] = lambda _method, _path: None
        self.keep: Callable[[Object], Object] = lambda spec: spec
        self.keep_status: Callable[[list[Object]], list[Object]] = lambda devices: devices
        self.applied: list[tuple[str, Object]] = []
        self.tokens: list[str] = []
        self.requested: set[tuple[str, str]] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.changed = threading.Condition()
        self._events: list[tuple[int, Object]] = []
        self._version = 100
        self._closed = False
        self._epoch = self._watches = 0
        self._owned: dict[tuple[str, str], set[tuple[object, ...]]] = {}  # by claim and field manager: entries

    def claim(
        self,
        name: str = "one",
        devices: tuple[str, ...] = ("gpu-0",),
        uid: str = "",
        config: tuple[Object, ...] = (),
        **more: Any,
    ) -> Object:
        """Store a claim that has these devices of node `worker`, and return it as in a request of the kubelet."""
        uid = uid or f"1d000000-0000-4000-8000-{name.encode().hex():0>12}"
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": "worker", "device": device, **more} for device in devices
        ]
        allocation = {"devices": {"results": results, "config": list(config)}} if devices else None
        self.put_claim(
            {
                "metadata": {"name": name, "namespace": "default", "uid": uid},
                "status": {"allocation": allocation} if allocation else {},
            }
        )
        return {"uid": uid, "namespace": "default", "name": name}

    def put_claim(self, claim: Object) -> None:
        """Store a claim and notify watches."""
        with self.changed:
            self.claims[claim["metadata"]["namespace"], claim["metadata"]["name"]] = claim
            self._event("MODIFIED", claim)

    def remove_claim(self, name: str) -> None:
        """Delete a claim."""
        with self.changed:
            self._event("DELETED", self.claims.pop(("default", name)))

    def edit(self, name: str, change: Callable[[Object], None]) -> None:
        """Edit a slice as another client."""
        with self.changed:
            edited = copy.deepcopy(self.slices[name])
            change(edited)
            self._put("MODIFIED", edited)

    def remove(self, *names: str) -> None:
        """Delete these slices, or all, as another client, for example a starting kubelet."""
        self.remove_all(names or tuple(self.slices))

    def remove_all(self, names: Iterable[str]) -> None:
        """Delete exactly these slices as another client."""
        with self.changed:
            for name in names:
                self._event("DELETED", self.slices.pop(name))

    def collect_garbage(self, uid: str) -> None:
        """Delete the slices that are not owned by the object with this UID, as the garbage collector does."""
        with self.changed:
            owned = {name: one["metadata"]["ownerReferences"][0]["uid"] for name, one in self.slices.items()}
            self.remove_all([name for name, owner in owned.items() if owner != uid])

    def restore(self, slices: dict[str, Object], version: int) -> None:
        """Restore the store from a backup and restart the server."""
        with self.changed:
            self.slices, self._version = slices, version
            self._events.clear()
        self.end_watches()

    def wait_until(self, check: Callable[[], bool], seconds: float = 5) -> None:
        """Wait until a condition on the API's state is true."""
        with self.changed:
            assert self.changed.wait_for(check, seconds), f"not true within {seconds} s; writes: {self.writes}"

    def end_watches(self) -> None:
        """End all watches, as a restart or the watch timeout does."""
        with self.changed:
            assert self.changed.wait_for(lambda: self._watches > 0, 5), "there is no watch"
            self._epoch += 1
            self.changed.notify_all()

    def close(self) -> None:
        """End all watches and refuse new ones."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()
        self.gate.set()

    def status(self, name: str = "one") -> list[Object]:
        """Return a claim's `status.devices`."""
        found: list[Object] = self.claims["default", name]["status"].get("devices", [])
        return found

    def respond(
        self, method: str, path: str, body: Object, query: Mapping[str, list[str]] = MappingProxyType({})
    ) -> tuple[int, Object]:
        """Handle a request other than a watch."""
        words = [unquote(word) for word in path.strip("/").split("/")]
        self.gate.wait(5)
        refused = (503, "the server is down") if self.down else self.refuse(method, path)
        if refused:
            return refused[0], {"message": refused[1]}
        if words[:2] == ["apis", "resource.k8s.io"] and not {*words[2:3]} <= {*self.versions}:
            return 404, {"message": "the server could not find the requested resource"}
        if "resourceclaims" in words:
            return self._claim(method, words, body, query)
        if words[:3] == ["api", "v1", "nodes"] and method == "PATCH":
            self.applied.append((query["fieldManager"][0], body))
        fixed = self._fixed(words)
        if fixed:
            return fixed
        with self.changed:
            status, found = self._slice(method, words[4:], body, is_dry="dryRun" in query)
            if "items" in found:
                found["items"] = [item for item in found["items"] if _selected(item, query)]
            return status, found

    def _fixed(self, words: list[str]) -> tuple[int, Object] | None:
        """Return objects that never change: nodes, classes, version and discovery."""
        match words:
            case ["api", "v1", "nodes", name]:
                return 200, {"metadata": {"name": name, "uid": self.nodes.get(name, f"uid-of-{name}")}}
            case ["apis", "resource.k8s.io", _, "deviceclasses", name]:
                uid = self.classes.get(name)
                return (
                    (200, {"metadata": {"uid": uid}})
                    if uid
                    else (404, {"message": f"deviceclasses {name!r} not found"})
                )
            case ["version"]:
                return 200, {"major": "1", "minor": self.minor}
            case ["apis", "resource.k8s.io"]:
                return 200, {"versions": [{"version": version} for version in self.versions]}
        return None

    def events(
        self, since: int, query: Mapping[str, list[str]] = MappingProxyType({}), of: str = "resourceslices"
    ) -> Iterator[Object]:
        """Yield watch events after a resource version. Claims are recognized by having no spec."""
        with self.changed:
            epoch = self._epoch
            self._watches += 1
            self.changed.notify_all()
        while not self._closed and epoch == self._epoch:
            with self.changed:
                self.changed.wait_for(partial(self._is_news, since, epoch), 60)
                news = [(version, event) for version, event in self._events if version > since]
            yield from (
                event
                for _, event in news
                if ("spec" in event["object"]) == (of == "resourceslices") and _selected(event["object"], query)
            )
            since = news[-1][0] if news else since

    def _is_news(self, since: int, epoch: int) -> bool:
        return self._closed or epoch != self._epoch or self._version > since

    def _claim(self, method: str, words: list[str], body: Object, query: Mapping[str, list[str]]) -> tuple[int, Object]:
        if len(words) == 4:
            return 200, {"metadata": {"resourceVersion": str(self._version)}, "items": list(self.claims.values())}
        found = self.claims.get((words[4], words[6]))
        if not found:
            return 404, {"message": f"resourceclaims {words[6]!r} not found"}
        if method == "PUT":
            self.put_claim(body)
            return 200, body
        if method != "PATCH":
            return 200, found
        if body["apiVersion"] != f"resource.k8s.io/{words[2]}":
            return 400, {"message": f"the API version of the patch is {body['apiVersion']}"}
        return self._apply(found, body, query["fieldManager"][0])

    def _apply(self, claim: Object, body: Object, manager: str) -> tuple[int, Object]:
        """Apply a field manager's `status.devices`, which may only contain allocated devices.

        Entries that the manager owned and leaves out now are removed, unless another manager owns them, too.
        """
        if body["metadata"]["uid"] != claim["metadata"]["uid"]:
            return 409, {"message": "the UID does not match"}
        wanted = self.keep_status(copy.deepcopy(body["status"]["devices"]))
        results = claim["status"].get("allocation", {}).get("devices", {}).get("results", [])
        if not {_device_key(entry) for entry in wanted} <= {_device_key(result) for result in results}:
            return 422, {"message": "must be an allocated device in the claim"}
        with self.changed:
            gone = {
                *map(_device_key, wanted),
                *self._set_owned(claim["metadata"]["uid"], manager, set(map(_device_key, wanted))),
            }
            others = [entry for entry in claim["status"].get("devices", []) if _device_key(entry) not in gone]
            if wanted or others:
                claim["status"]["devices"] = others + wanted
            self.applied.append((manager, body))
            self._event("MODIFIED", claim)
        return 200, claim

    def _set_owned(self, uid: str, manager: str, keys: set[tuple[object, ...]]) -> set[tuple[object, ...]]:
        """Set the entries that a manager owns, and return those that no manager owns any more."""
        before, self._owned[uid, manager] = self._owned.get((uid, manager), set()), keys
        return before - {key for (of, _), owned in self._owned.items() if of == uid for key in owned}

    def _slice(self, method: str, name: list[str], body: Object, *, is_dry: bool) -> tuple[int, Object]:
        if method == "GET":
            return 200, {"metadata": {"resourceVersion": str(self._version)}, "items": list(self.slices.values())}
        there = self.slices.get(name[0] if name else body["metadata"]["name"])
        if is_dry:
            self.dry_runs.append(name[0] if name else body["metadata"]["name"])
        else:
            self.writes.append(f"{method} {body['metadata']['name'] if method != 'DELETE' else name[0]}")
        if method == "POST":
            new = {**body, "metadata": {**body["metadata"], "uid": f"uid-{self._version}", "generation": 0}}
            stored = {} if there else self._kept(new) if is_dry else self._put("ADDED", new)
            return (201, stored) if stored else (409, {"message": "already exists"})
        if not there:
            return 404, {"message": "not found"}
        field, part = ("uid", "preconditions") if method == "DELETE" else ("resourceVersion", "metadata")
        if body[part][field] != there["metadata"][field]:
            return 409, {"message": f"the object has another {field}"}
        if method == "DELETE":
            self._event("DELETED", self.slices.pop(name[0]))
            return 200, there
        new = {**body, "metadata": {**there["metadata"], **body["metadata"]}}
        return 200, self._kept(new) if is_dry else self._put("MODIFIED", new)

    def _put(self, kind: str, new: Object) -> Object:
        stored = self.slices[new["metadata"]["name"]] = self._kept(new)
        self._event(kind, stored)
        return stored

    def _kept(self, new: Object) -> Object:
        """Return the slice as it would be stored."""
        spec = self.keep(copy.deepcopy(new["spec"]))
        before = self.slices.get(new["metadata"]["name"])
        changed = before is None or before["spec"] != spec
        generation = new["metadata"]["generation"] + (1 if changed else 0)
        return {**new, "spec": spec, "metadata": {**new["metadata"], "generation": generation}}

    def _event(self, kind: str, item: Object) -> None:
        self._version += 1
        if kind != "DELETED":
            item["metadata"]["resourceVersion"] = str(self._version)
        self._events.append((self._version, {"type": kind, "object": copy.deepcopy(item)}))
        self.changed.notify_all()


def _device_key(entry: Object) -> tuple[object, ...]:
    return tuple(entry.get(name) for name in ("driver", "pool", "device", "shareID"))


def _selected(item: Object, query: Mapping[str, list[str]]) -> bool:
    """Return True if the field selector matches the slice; claims are not selected."""
    (selector,) = query.get("fieldSelector", [""])
    terms = (term.partition("=") for term in selector.split(",") if term)
    return all(item["spec"].get(field.removeprefix("spec."), "") == value for field, _, value in terms)


def permission(method: str, path: str, *, is_watch: bool) -> tuple[str, str]:
    """Return the resource and the verb for authorization; ('', 'get') for discovery, which all users may read."""
    words = path.strip("/").split("/")
    words = words[2:] if words[0] == "api" else words[3:]
    if words[:1] == ["namespaces"] and len(words) > 2:
        words = words[2:]
    if not words:
        return "", "get"
    of_one = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    of_all = {"GET": "watch" if is_watch else "list", "POST": "create", "DELETE": "deletecollection"}
    return "/".join((words[0], *words[2:])), (of_one if len(words) > 1 else of_all)[method]


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves a FakeApi over HTTP."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeApi

    def handle_request(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        self.fake.requested.add(permission(self.command, url.path, is_watch="watch" in query))
        self.fake.tokens.append(self.headers.get("Authorization", ""))
        if "watch" in query and not self.fake.down:
            self._stream(self.fake.events(int(query["resourceVersion"][0]), query, url.path.rpartition("/")[2]))
            return
        status, content = self.fake.respond(self.command, url.path, body, query)
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _stream(self, events: Iterator[Object]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for event in events:
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request  # noqa: N815 - the names that the base class calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass


class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have disconnected."""
