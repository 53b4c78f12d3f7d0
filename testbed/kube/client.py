"""A Kubernetes API client for objects of any kind, as plain dicts, so that fields unknown to client libraries are kept.

The transport does authentication and TLS.
"""

from __future__ import annotations

import builtins
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
from testbed.kube import answers
from testbed.kube.execution import execute, execute_unchecked
from testbed.kube.kubeconfig import Access, load_access
from testbed.kube.transport import Transport
from testbed.process import Completed
from testbed.redaction import redactor
from testbed.waiting import Budget

Object = dict[str, Any]
_WHOLE_ANSWER = 60.0  # seconds for a whole answer, at least
_QUOTED = 4000  # characters of an error's message; an admission error names every wrong field
_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
}


@dataclass(frozen=True)
class Resource:
    """The API resource of one kind, from discovery."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def group(self) -> str:
        """Return the API group; '' for the core group."""
        return group_of(self.api_version)

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of an object, or of a list if no name is given. No namespace means all of them."""
        root = "/api" if "/" not in self.api_version else "/apis"
        parts = [root, self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


class Kube:
    """A client of one API server as one user. Creating one sends no request."""

    def __init__(
        self, kubeconfig: Path | Access, *, context: str | None = None, user_agent: str = "dra-testbed"
    ) -> None:
        access = kubeconfig if isinstance(kubeconfig, Access) else load_access(kubeconfig, context)
        self._transport = Transport(access, user_agent)
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
        """Send one request and return parsed JSON, or text. Raise ApiError if it is refused. `headers` may impersonate a user."""
        with self._open(method, path, query, body, content_type, timeout, headers=headers) as response:
            text = answers.read(response, f"{method} {path}", _whole(timeout)).decode("utf-8", errors="replace")
        if "json" in (response.headers.get("Content-Type") or ""):
            return _registered(answers.parse(text, f"{method} {path}"))
        return text

    def resource(self, api_version: str, kind: str) -> Resource:
        """Return the API resource of a kind, from cached discovery. Raise UsageError if the server does not have it."""
        found = self._resources.get((api_version, kind))
        if found:
            return found
        path = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        for entry in answers.resources(self.request("GET", path), f"GET {path}"):
            if "/" not in entry["name"]:
                resource = Resource(api_version, entry["name"], entry["kind"], entry["namespaced"])
                self._resources[(api_version, entry["kind"])] = resource
        found = self._resources.get((api_version, kind))
        if not found:
            known = [other for (version, other) in self._resources if version == api_version]
            raise UsageError(f"the API server has no {kind} in {api_version}", hint=did_you_mean(kind, known))
        return found

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """Return one object. Raise ApiError with status 404 if it does not exist."""
        return self._object("GET", self.resource(api_version, kind).path(namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Return one object, or None if it does not exist."""
        with missing_ok():
            return self.get(api_version, kind, name, namespace)
        return None

    def list(self, api_version: str, kind: str, namespace: str | None = None, **selectors: str) -> list[Object]:
        """Return the objects of a kind; selectors are `labelSelector=` and `fieldSelector=`, which are checked here too."""
        found = self.list_path(self.resource(api_version, kind).path(namespace), selectors)
        own = namespace if self.resource(api_version, kind).namespaced else None
        return [{**item, "apiVersion": api_version, "kind": kind} for item in answers.selected(found, own, selectors)]

    def list_path(self, path: str, query: dict[str, str], *, timeout: float = 10.0) -> builtins.list[Object]:
        """Return the items of all pages of a list. Raise ApiError if the list does not end."""
        found: builtins.list[Object] = []
        token, request = "", f"GET {path}"
        for _ in range(answers.MAX_PAGES):
            page = self.request("GET", path, query={**query, **({"continue": token} if token else {})}, timeout=timeout)
            found += answers.items(page, request)
            before, token = token, answers.next_page(page)
            if not token:
                return found
            if token == before:
                break
        raise ApiError(request, 0, "", f"the list does not end: {len(found)} objects so far")

    def resource_version(self, api_version: str, kind: str) -> str:
        """Return the current resource version, from which a watch with `resourceVersion=` continues."""
        path = self.resource(api_version, kind).path(None)
        answer = self.request("GET", path, query={"limit": "1"})
        try:
            return str(answer["metadata"]["resourceVersion"])
        except (KeyError, TypeError) as wrong:
            raise ApiError(f"GET {path}", 0, "", f"the answer has no resource version: {answer!r:.200}") from wrong

    def create(self, manifest: Object, *, dry_run: bool = False) -> Object:
        """Create an object and return it."""
        query = {"dryRun": "All"} if dry_run else None
        path = self._resource_of(manifest).path(_namespace(manifest))
        return self._object("POST", path, query=query, body=manifest)

    def apply(
        self,
        manifest: Object,
        *,
        manager: str = "dra-testbed",
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Apply an object server-side and return it."""
        path = self._resource_of(manifest).path(_namespace(manifest), manifest["metadata"]["name"], subresource)
        query = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        return self._object("PATCH", path, query=query, body=manifest, content_type=_PATCHES["apply"])

    def patch(self, target: Object, change: Any, *, how: str = "merge", subresource: str | None = None) -> Object:
        """Patch an existing object and return it."""
        path = self._resource_of(target).path(_namespace(target), target["metadata"]["name"], subresource)
        return self._object("PATCH", path, body=change, content_type=_PATCHES[how])

    def update(self, manifest: Object, *, subresource: str | None = None) -> Object:
        """Replace an object and return it; its resourceVersion prevents lost updates."""
        path = self._resource_of(manifest).path(_namespace(manifest), manifest["metadata"]["name"], subresource)
        return self._object("PUT", path, body=manifest)

    def delete(self, target: Object, *, grace: int | None = None, dependents_first: bool = False) -> None:
        """Delete an object if it exists; with `dependents_first` after its dependents.

        If the target has a uid, another object that has its name by now is not deleted.
        """
        options: Object = {"propagationPolicy": "Foreground" if dependents_first else "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        uid = target["metadata"].get("uid")
        if uid:
            options["preconditions"] = {"uid": uid}
        path = self._resource_of(target).path(_namespace(target), target["metadata"]["name"])
        try:
            self.request("DELETE", path, body=options)
        except ApiError as refused:
            if refused.status != 404 and not (uid and refused.status == 409):
                raise

    def logs(
        self, namespace: str, pod: str, *, container: str | None = None, previous: bool = False, since: str = ""
    ) -> str:
        """Return the log of a container; with `since`, a time as in the API, only from then on."""
        given = {"container": container, "previous": "true" if previous else None, "sinceTime": since}
        query = {key: value for key, value in given.items() if value}
        return str(self.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query=query))

    def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None, timeout: float = 30.0
    ) -> str:
        """Run a program in a container and return what it printed. Raise CommandFailed if it fails."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        return execute(self._transport, path, command, container, _with_patience(timeout))

    def exec_unchecked(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None, timeout: float = 30.0
    ) -> Completed:
        """Run a program in a container and return its outputs and exit code, whatever that is."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
        return execute_unchecked(self._transport, path, command, container, _with_patience(timeout))

    def watch(
        self, api_version: str, kind: str, namespace: str | None = None, *, seconds: float, **selectors: str
    ) -> Iterator[Object]:
        """Yield watch events ({type, object}) for `seconds`, existing objects first. Raise ApiError for an event of type ERROR."""
        query = {"watch": "true", "timeoutSeconds": str(max(1, round(seconds))), **selectors}
        path = self.resource(api_version, kind).path(namespace)
        with self._open("GET", path, query, None, "application/json", seconds + 5) as response:
            for line in answers.lines(response, f"WATCH {path}", seconds + 5):
                yield _event(answers.parse(line, f"WATCH {path}"), f"WATCH {path}")

    def _object(self, method: str, path: str, **how: Any) -> Object:
        return answers.as_object(self.request(method, path, **how), f"{method} {path}")

    def _resource_of(self, manifest: Object) -> Resource:
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
                preload_content=False,
            )
            try:
                if response.status >= 400:
                    text = answers.read(response, f"{method} {path}", _whole(timeout))
                    raise _api_error(f"{method} {path}", response.status, text.decode("utf-8", errors="replace"))
                yield response
            finally:
                response.close()  # a complete answer has released its connection before
        except urllib3.exceptions.HTTPError as lost:
            raise ApiError(f"{method} {path}", 0, "", f"no answer: {lost}{_clock_hint(str(lost))}") from lost


def _registered(answer: Any) -> Any:
    """Return the answer. Its Secrets are registered with the redactor, so that no later text contains their values."""
    if isinstance(answer, dict) and answer.get("kind") in ("Secret", "SecretList"):
        found = answer.get("items") or [answer]
        for each in filter(lambda entry: isinstance(entry, dict), found if isinstance(found, list) else ()):
            redactor.register_secret(each)
    return answer


def _clock_hint(error: str) -> str:
    """Return a hint for a certificate that is not valid now: a wrong clock is the usual cause."""
    if not any(each in error for each in ("certificate is not yet valid", "certificate has expired")):
        return ""
    return f"; check this host's clock, which says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _with_patience(seconds: float) -> float:
    """Return a timeout, lengthened by the patience factor but never shortened."""
    return max(seconds, Budget("an answer", seconds, "of the API server").effective_seconds)


def _whole(seconds: float) -> float:
    """Return the time for a whole answer: the timeout of a request is for each read of a part."""
    return max(_WHOLE_ANSWER, 2 * _with_patience(seconds))


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion; '' for the core group."""
    return api_version.rpartition("/")[0]


@contextlib.contextmanager
def missing_ok() -> Iterator[None]:
    """Suppress an ApiError with status 404."""
    try:
        yield
    except ApiError as refused:
        if refused.status != 404:
            raise


def _namespace(manifest: Object) -> str:
    return str(manifest["metadata"].get("namespace", "default"))


def _event(event: Object, request: str) -> Object:
    if (
        not isinstance(event, dict)
        or not isinstance(event.get("type"), str)
        or not isinstance(event.get("object"), dict)
    ):
        raise ApiError(request, 0, "", f"this is no watch event: {event!r:.200}")
    if event["type"] == "ERROR":
        status = event["object"]
        code, message = status.get("code", 0), str(status.get("message", status))[:_QUOTED]
        raise ApiError(request, code if isinstance(code, int) else 0, str(status.get("reason", ""))[:_QUOTED], message)
    if event["type"] != "BOOKMARK":
        answers.as_object(event["object"], request)
    return event


def _api_error(request: str, status: int, text: str) -> ApiError:
    try:
        said = json.loads(text)
        reason, message = str(said.get("reason", "")), str(said.get("message", text))
        return ApiError(request, status, reason[:_QUOTED], message[:_QUOTED])
    except (ValueError, AttributeError, RecursionError):
        return ApiError(request, status, "", text[:1000])
