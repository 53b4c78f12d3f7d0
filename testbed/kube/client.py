"""A client for any kind of object, in plain dicts. The transport does authentication and TLS; here are the paths.

Plain dicts on purpose: fields that are newer than any client library must survive.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from testbed.errors import ApiError, UsageError, did_you_mean
from testbed.kube.execution import attempt, execute
from testbed.kube.kubeconfig import Access, load_access
from testbed.kube.transport import Transport
from testbed.process import Completed
from testbed.waiting import Budget

Object = dict[str, Any]
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
}


@dataclass(frozen=True)
class Resource:
    """Where the objects of one kind live, as discovery says it."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def group(self) -> str:
        """Its API group; '' for the core."""
        return group_of(self.api_version)

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of one object or of a list; no namespace means all of them."""
        root = "/api" if "/" not in self.api_version else "/apis"
        parts = [root, self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


class Kube:
    """One API server, as one user. Cheap to make: it is asked nothing before the first call."""

    def __init__(
        self, kubeconfig: Path | Access, *, context: str | None = None, user_agent: str = "dra-testbed"
    ) -> None:
        where = kubeconfig if isinstance(kubeconfig, Access) else load_access(kubeconfig, context)
        self._transport = Transport(where, user_agent)
        self._resources: dict[tuple[str, str], Resource] = {}

    def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float = 10.0,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Any:
        """One request; JSON comes back parsed, all else as text. Every refusal is an ApiError. `headers` may say in whose name."""
        with self._open(method, path, query, body, content_type, timeout, headers=headers) as response:
            text = response.data.decode("utf-8", errors="replace")
        if "json" in (response.headers.get("Content-Type") or ""):
            return json.loads(text)
        return text

    def resource(self, api_version: str, kind: str) -> Resource:
        """Where that kind lives; found by discovery, once."""
        found = self._resources.get((api_version, kind))
        if found:
            return found
        path = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        for entry in self.request("GET", path)["resources"]:
            if "/" not in entry["name"]:
                seen = Resource(api_version, entry["name"], entry["kind"], entry["namespaced"])
                self._resources[(api_version, entry["kind"])] = seen
        found = self._resources.get((api_version, kind))
        if not found:
            known = [k for (version, k) in self._resources if version == api_version]
            raise UsageError(f"the API server has no {kind} in {api_version}", hint=did_you_mean(kind, known))
        return found

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """One object; ApiError with status 404 where it is not there."""
        return dict(self.request("GET", self.resource(api_version, kind).path(namespace, name)))

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """One object, or None."""
        with missing_ok():
            return self.get(api_version, kind, name, namespace)
        return None

    def list(self, api_version: str, kind: str, namespace: str | None = None, **selectors: str) -> list[Object]:
        """The objects of a kind; selectors are `labelSelector=` and `fieldSelector=`."""
        answer = self.request("GET", self.resource(api_version, kind).path(namespace), query=selectors)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def version(self, api_version: str, kind: str) -> str:
        """This moment, as the server counts: a watch with `resourceVersion=` goes on from here."""
        answer = self.request("GET", self.resource(api_version, kind).path(None), query={"limit": "1"})
        return str(answer["metadata"]["resourceVersion"])

    def create(self, manifest: Object, *, dry_run: bool = False) -> Object:
        """Create an object where its manifest says."""
        query = {"dryRun": "All"} if dry_run else None
        return dict(self.request("POST", self._home(manifest).path(_namespace(manifest)), query=query, body=manifest))

    def apply(
        self,
        manifest: Object,
        *,
        manager: str = "dra-testbed",
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: make it so, whether it is there or not."""
        path = self._home(manifest).path(_namespace(manifest), manifest["metadata"]["name"], subresource)
        query = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        return dict(self.request("PATCH", path, query=query, body=manifest, content_type=_PATCHES["apply"]))

    def patch(self, target: Object, change: Any, *, how: str = "merge", subresource: str | None = None) -> Object:
        """Change an object that is there."""
        path = self._home(target).path(_namespace(target), target["metadata"]["name"], subresource)
        return dict(self.request("PATCH", path, body=change, content_type=_PATCHES[how]))

    def update(self, manifest: Object, *, subresource: str | None = None) -> Object:
        """Replace an object; its resourceVersion guards against lost updates."""
        path = self._home(manifest).path(_namespace(manifest), manifest["metadata"]["name"], subresource)
        return dict(self.request("PUT", path, body=manifest))

    def delete(self, target: Object, *, grace: int | None = None, dependents_first: bool = False) -> None:
        """Ask for an object's end; one that is gone already is fine. With `dependents_first` it goes after what it has made.

        A target with a uid, one that was seen, means that object: another one that has its name by now stays.
        """
        options: Object = {"propagationPolicy": "Foreground" if dependents_first else "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        uid = target["metadata"].get("uid")
        if uid:
            options["preconditions"] = {"uid": uid}
        path = self._home(target).path(_namespace(target), target["metadata"]["name"])
        try:
            self.request("DELETE", path, body=options)
        except ApiError as refused:
            if refused.status != 404 and not (uid and refused.status == 409):
                raise

    def logs(
        self, namespace: str, pod: str, *, container: str | None = None, previous: bool = False, since: str = ""
    ) -> str:
        """What a pod's container printed; with `since`, a time as the API writes it, only what it printed from then on."""
        given = {"container": container, "previous": "true" if previous else None, "sinceTime": since}
        query = {key: value for key, value in given.items() if value}
        return str(self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query=query))

    def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None, timeout: float = 30.0
    ) -> str:
        """Run a program in a container and return what it printed. CommandFailed when it ends badly."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        return execute(self._transport, path, command, container, _with_patience(timeout))

    def attempt(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None, timeout: float = 30.0
    ) -> Completed:
        """Run a program in a container and keep what it said, whatever its status."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        return attempt(self._transport, path, command, container, _with_patience(timeout))

    def watch(
        self, api_version: str, kind: str, namespace: str | None = None, *, seconds: float, **selectors: str
    ) -> Iterator[Object]:
        """Watch events ({type, object}), the objects that exist first, until `seconds` are over. An event of type ERROR is an ApiError."""
        query = {"watch": "true", "timeoutSeconds": str(max(1, round(seconds))), **selectors}
        path = self.resource(api_version, kind).path(namespace)
        with self._open("GET", path, query, None, "application/json", seconds + 5, whole=False) as response:
            rest = b""
            for chunk in response.stream(None):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    yield _event(json.loads(line), f"WATCH {path}")

    def _home(self, manifest: Object) -> Resource:
        return self.resource(manifest["apiVersion"], manifest["kind"])

    @contextlib.contextmanager
    def _open(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None,
        body: Any,
        content_type: str,
        timeout: float,
        *,
        whole: bool = True,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        sent = self._transport.headers(headers)
        sent.update({"Accept": "application/json", "Content-Type": content_type})
        payload = None if body is None else json.dumps(body)
        path_and_query = path + (f"?{urlencode(query)}" if query else "")
        try:
            response = self._transport.send(
                method,
                path_and_query,
                body=payload,
                headers=sent,
                timeout=_with_patience(timeout),
                preload_content=whole,
            )
            try:
                if response.status >= 400:
                    raise _api_error(f"{method} {path}", response)
                yield response
            finally:
                response.release_conn() if whole else response.close()
        except urllib3.exceptions.HTTPError as lost:
            raise ApiError(f"{method} {path}", 0, "", f"no answer: {lost}{_clock_hint(str(lost))}") from lost


def _clock_hint(said: str) -> str:
    """Where a certificate is out of its time, mostly a clock is wrong; nobody else would say so."""
    if not any(each in said for each in ("certificate is not yet valid", "certificate has expired")):
        return ""
    return f"; this host's clock says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: is it right?"


def _with_patience(seconds: float) -> float:
    """How long an answer may take: `--patience` stretches it, and impatience does not cut it off."""
    return max(seconds, Budget("an answer", seconds, "of the API server").effective_seconds)


def group_of(api_version: str) -> str:
    """The API group in an apiVersion; '' for the core."""
    return api_version.rpartition("/")[0]


@contextlib.contextmanager
def missing_ok() -> Iterator[None]:
    """Let a 404 pass; every other refusal stays an error."""
    try:
        yield
    except ApiError as refused:
        if refused.status != 404:
            raise


def _namespace(manifest: Object) -> str:
    return str(manifest["metadata"].get("namespace", "default"))


def _event(event: Object, request: str) -> Object:
    if event["type"] == "ERROR":
        said = event["object"]
        raise ApiError(request, int(said.get("code", 0)), str(said.get("reason", "")), str(said.get("message", said)))
    return event


def _api_error(request: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    text = response.data.decode("utf-8", errors="replace")
    try:
        status = json.loads(text)
        return ApiError(request, response.status, str(status.get("reason", "")), str(status.get("message", text)))
    except (ValueError, AttributeError):
        return ApiError(request, response.status, "", text[:1000])
