"""The API client against a small HTTP server that answers like an API server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from testbed.errors import ApiError, UsageError
from testbed.kube.client import Kube, Resource
from testbed.kube.transport import Transport
from testbed.waiting import set_patience

CORE = {"resources": [
    {"name": "pods", "kind": "Pod", "namespaced": True},
    {"name": "pods/log", "kind": "Pod", "namespaced": True},
    {"name": "nodes", "kind": "Node", "namespaced": False},
]}  # fmt: skip
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    body: Any
    headers: dict[str, str]


@dataclass
class ApiServer:
    """A server with an answer for each method and path: a status and a document, a text, or chunks of a stream."""

    url: str = ""
    answers: dict[str, tuple[int, Any]] = field(default_factory=lambda: {"GET /api/v1": (200, CORE)})
    seen: list[Seen] = field(default_factory=list)

    @property
    def last(self) -> Seen:
        return self.seen[-1]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    fake = ApiServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    fake.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield fake
    http.shutdown()
    thread.join()
    http.server_close()


def _handler(fake: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            fake.seen.append(Seen(self.command, self.path, body, dict(self.headers)))
            missing = (404, {"kind": "Status", "reason": "NotFound", "message": "not here"})
            status, content = fake.answers.get(f"{self.command} {self.path.partition('?')[0]}", missing)
            self.send_response(status)
            self.stream(content) if isinstance(content, list) else self.whole(content)

        def whole(self, content: Any) -> None:
            text = content if isinstance(content, str) else json.dumps(content)
            self.send_header("Content-Type", "text/plain" if isinstance(content, str) else "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def stream(self, pieces: list[bytes]) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"")
                self.wfile.flush()
            if pieces[-1]:
                self.wfile.write(b"0\r\n\r\n")
            else:  # an empty last piece: the connection breaks off
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in http.server
            """Quiet."""

    return Handler


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.fixture
def kube(kubeconfig: Path) -> Kube:
    return Kube(kubeconfig, user_agent="dra-testbed/test")


def test_a_request_has_user_agent_and_credentials(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /version"] = (200, {"major": "1"})

    assert kube.request("GET", "/version") == {"major": "1"}
    assert server.last.headers["User-Agent"] == "dra-testbed/test"
    assert {key.lower(): value for key, value in server.last.headers.items()}["authorization"] == "Bearer secret"


def test_other_content_than_json_is_returned_as_text(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /readyz"] = (200, "ok")

    assert kube.request("GET", "/readyz") == "ok"


def test_a_refused_request_is_an_error_with_the_servers_message(server: ApiServer, kube: Kube) -> None:
    server.answers["POST /api/v1/namespaces/ns/pods"] = (403, {"reason": "Forbidden", "message": "you may not"})

    with pytest.raises(ApiError, match="POST /api/v1/namespaces/ns/pods: 403 Forbidden: you may not") as refused:
        kube.create(POD)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")


def test_an_error_without_a_status_object_is_shown_unchanged(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /x"] = (502, "bad gateway")
    server.answers["GET /y"] = (500, "[1, 2]")

    with pytest.raises(ApiError, match="502 : bad gateway"):
        kube.request("GET", "/x")
    with pytest.raises(ApiError, match="500 "):
        kube.request("GET", "/y")


def test_an_unreachable_server_is_an_error_without_a_status(kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    kubeconfig.write_text(yaml.safe_dump(config))

    with pytest.raises(ApiError, match="GET /version: no answer") as lost:
        Kube(kubeconfig).request("GET", "/version")
    assert lost.value.status == 0


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("certificate is not yet valid", "check this host's clock, which says"),
        ("hostname mismatch", "hostname mismatch$"),
    ],
)
def test_the_error_for_an_expired_certificate_names_the_clock(
    error: str, hint: str, kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise urllib3.exceptions.SSLError(f"certificate verify failed: {error}")

    monkeypatch.setattr(Transport, "send", refuse)
    with pytest.raises(ApiError, match=hint):
        kube.request("GET", "/version")


@pytest.mark.parametrize("content", ["", "apiVersion: v1\nkind: Config\n"])
def test_an_invalid_kubeconfig_is_a_usage_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(content)

    with pytest.raises(UsageError, match="kubeconfig"):
        Kube(tmp_path / "kubeconfig")


def test_get_raises_and_find_returns_none_for_a_missing_object(kube: Kube) -> None:
    with pytest.raises(ApiError, match="404 NotFound: not here"):
        kube.get("v1", "Pod", "a", "ns")
    assert kube.find("v1", "Pod", "a", "ns") is None


def test_find_raises_other_errors(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/nodes/n"] = (500, {"reason": "InternalError", "message": "oops"})

    with pytest.raises(ApiError, match="oops"):
        kube.find("v1", "Node", "n")


def test_discovery_is_cached(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/namespaces/ns/pods/a"] = (200, POD)

    assert kube.get("v1", "Pod", "a", "ns") == kube.get("v1", "Pod", "a", "ns") == POD
    assert [seen.path for seen in server.seen].count("/api/v1") == 1


def test_paths_of_groups_begin_with_apis(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /apis/resource.k8s.io/v1"] = (
        200, {"resources": [{"name": "resourceslices", "kind": "ResourceSlice", "namespaced": False}]}
    )  # fmt: skip

    assert kube.resource("resource.k8s.io/v1", "ResourceSlice") == Resource(
        "resource.k8s.io/v1", "resourceslices", "ResourceSlice", namespaced=False
    )


def test_an_unknown_kind_is_refused_with_a_suggestion(kube: Kube) -> None:
    with pytest.raises(UsageError, match=r"no Pods in v1(.|\n)*did you mean Pod\?"):
        kube.resource("v1", "Pods")


def test_objects_of_a_list_have_kind_and_api_version(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/namespaces/ns/pods"] = (
        200,
        {"items": [{"metadata": {"name": "a"}, "spec": {"nodeName": "n"}}]},
    )

    found = kube.list("v1", "Pod", "ns", labelSelector="app=x,tier in (a)", fieldSelector="spec.nodeName=n")

    assert found == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "n"}}]
    assert server.last.path == (
        "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx%2Ctier+in+%28a%29&fieldSelector=spec.nodeName%3Dn"
    )


def test_without_a_namespace_all_namespaces_are_listed(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/pods"] = (200, {"items": []})

    assert kube.list("v1", "Pod") == []


def test_apply_is_server_side(server: ApiServer, kube: Kube) -> None:
    server.answers["PATCH /api/v1/namespaces/ns/pods/a"] = (200, POD)

    kube.apply(POD)

    assert server.last.headers["Content-Type"] == "application/apply-patch+yaml"
    assert server.last.path.endswith("?fieldManager=dra-testbed&force=true")
    assert server.last.body == POD


@pytest.mark.parametrize(
    ("how", "content_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("json", "application/json-patch+json"),
    ],
)
def test_each_patch_has_its_content_type(how: str, content_type: str, server: ApiServer, kube: Kube) -> None:
    server.answers["PATCH /api/v1/nodes/n/status"] = (200, NODE)

    kube.patch(NODE, {"a": 1}, how=how, subresource="status")

    assert server.last.headers["Content-Type"] == content_type
    assert server.last.body == {"a": 1}


def test_an_object_without_a_namespace_is_created_in_default(server: ApiServer, kube: Kube) -> None:
    server.answers["PUT /api/v1/namespaces/default/pods/a"] = (200, POD)

    kube.update({**POD, "metadata": {"name": "a"}})

    assert server.last.method == "PUT"


def test_deleting_a_missing_object_is_not_an_error(server: ApiServer, kube: Kube) -> None:
    kube.delete(POD, grace=0)

    assert server.last.method == "DELETE"
    assert server.last.body == {"propagationPolicy": "Background", "gracePeriodSeconds": 0}


def test_a_refused_deletion_is_an_error(server: ApiServer, kube: Kube) -> None:
    server.answers["DELETE /api/v1/nodes/n"] = (409, {"reason": "Conflict", "message": "busy"})

    with pytest.raises(ApiError, match="409 Conflict"):
        kube.delete(NODE)


def test_an_object_with_a_uid_is_deleted_and_no_other_of_its_name(server: ApiServer, kube: Kube) -> None:
    path = "DELETE /api/v1/namespaces/ns/pods/a"
    server.answers[path] = (409, {"reason": "Conflict", "message": "UID in precondition: 7, UID in object meta: 8"})

    seen = {**POD, "metadata": {"name": "a", "namespace": "ns", "uid": "7"}}
    kube.delete(seen)

    assert server.last.body["preconditions"] == {"uid": "7"}
    server.answers[path] = (500, {"message": "oops"})
    with pytest.raises(ApiError, match="oops"):
        kube.delete(seen)


def test_the_log_of_a_container_is_text(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/namespaces/ns/pods/a/log"] = (200, "hello\n")

    assert kube.logs("ns", "a", container="main", previous=True) == "hello\n"
    assert server.last.path.endswith("/log?container=main&previous=true")


def event(kind: str, **content: object) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {}, **content}}).encode() + b"\n"


def test_watch_events_may_be_split_anywhere(server: ApiServer, kube: Kube) -> None:
    stream = event("ADDED", name="ä") + event("MODIFIED", name="b")
    server.answers["GET /api/v1/nodes"] = (200, [stream[:3], stream[3:40], stream[40:]])

    found = list(kube.watch("v1", "Node", seconds=0.2, fieldSelector="metadata.name=n"))

    assert [(each["type"], each["object"]["name"]) for each in found] == [("ADDED", "ä"), ("MODIFIED", "b")]
    assert server.last.path == "/api/v1/nodes?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dn"


def _events(kube: Kube) -> list[str]:
    return [each["type"] for each in kube.watch("v1", "Node", seconds=5)]


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (
            [event("ADDED"), event("ERROR", code=410, reason="Expired", message="too old")],
            "WATCH .*410 Expired: too old",
        ),
        ([event("ADDED"), b""], "GET /api/v1/nodes: no answer"),
    ],
    ids=["the server ends it", "the connection breaks"],
)
def test_a_watch_that_breaks_is_an_error(pieces: list[bytes], message: str, server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/nodes"] = (200, pieces)

    with pytest.raises(ApiError, match=message):
        _events(kube)


def test_a_refused_watch_is_an_error(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /api/v1/nodes"] = (403, {"reason": "Forbidden", "message": "no"})

    with pytest.raises(ApiError, match="403 Forbidden"):
        _events(kube)


@pytest.mark.parametrize(("patience", "seconds"), [(1, 10), (10, 100), (0.1, 10)])
def test_patience_lengthens_timeouts_but_never_shortens_them(
    server: ApiServer, kube: Kube, monkeypatch: pytest.MonkeyPatch, patience: float, seconds: float
) -> None:
    timeouts: list[float] = []
    transport = kube._transport.pool
    request = transport.request

    def asking(*words: Any, timeout: float, **rest: Any) -> Any:
        timeouts.append(timeout)
        return request(*words, timeout=timeout, **rest)

    monkeypatch.setattr(transport, "request", asking)
    set_patience(patience)
    try:
        kube.request("GET", "/api/v1")
    finally:
        set_patience(1)

    assert timeouts == [seconds]


def test_a_request_may_impersonate_a_user(server: ApiServer, kube: Kube) -> None:
    server.answers["GET /version"] = (200, {})
    kube.request("GET", "/version", headers=[("Impersonate-User", "a"), ("Impersonate-Group", "b")])
    assert {"Impersonate-User": "a", "Impersonate-Group": "b"}.items() <= server.last.headers.items()
