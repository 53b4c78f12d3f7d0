"""A hostile or broken API server gets a clear error in bounded time and memory, and makes the client act on no object that is not ours."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from testbed.bringup import removal
from testbed.errors import ApiError
from testbed.kube import answers, client
from testbed.kube.client import Kube
from testbed.kube.discovery import find_labelled
from testbed.kube.ownership import Owner
from testbed.progress import Silent
from tests.fakes import api_server

MINE = Owner("mine", "aaaaaaaaaaaa")
SLICES = "GET /apis/resource.k8s.io/v1/resourceslices"
PODS = "GET /api/v1/namespaces/mine/pods"
POD = {"metadata": {"name": "p", "namespace": "mine"}}


@pytest.fixture
def server() -> Iterator[api_server.ApiServer]:
    with api_server.running() as running:
        yield running


@pytest.fixture
def kube(server: api_server.ApiServer, tmp_path: Path) -> Kube:
    return Kube(server.kubeconfig(tmp_path))


def _slice(driver: str) -> Any:
    return {"metadata": {"name": f"of-{driver}", "uid": driver}, "spec": {"driver": driver}}


WRONG_LISTS = [
    [], {}, 7, None, "text", {"items": 7}, {"items": {"a": 1}}, {"items": [7]}, {"items": [{}]}, {"items": [{"metadata": []}]},
    {"items": [{"metadata": {"name": 7}}]}, {"items": [{"metadata": {"name": "p", "labels": [1]}}]},
]  # fmt: skip


@pytest.mark.parametrize("answer", WRONG_LISTS, ids=str)
def test_a_list_of_wrong_types_is_an_error(server: api_server.ApiServer, kube: Kube, answer: Any) -> None:
    server.answers[PODS] = (200, json.loads(json.dumps(answer)))
    with pytest.raises(ApiError, match="/pods: the answer is no") as refused:
        kube.list("v1", "Pod", "mine")
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("answer", [[], 7, None, "text", {"metadata": 7}, {}], ids=str)
def test_an_object_of_wrong_types_is_an_error(server: api_server.ApiServer, kube: Kube, answer: Any) -> None:
    server.answers[f"{PODS}/p"] = (200, answer)
    with pytest.raises(ApiError, match="the answer is no Kubernetes object"):
        kube.get("v1", "Pod", "p", "mine")


@pytest.mark.parametrize("answer", [[], {}, {"resources": 7}, {"resources": [{"name": "pods"}]}], ids=str)
def test_discovery_of_wrong_types_is_an_error(server: api_server.ApiServer, kube: Kube, answer: Any) -> None:
    server.answers["GET /api/v1"] = (200, answer)
    with pytest.raises(ApiError, match="the answer is no list of API resources"):
        kube.list("v1", "Pod")


@pytest.mark.parametrize("answer", [[], {}, {"groups": 7}, {"groups": [{"name": "x"}]}], ids=str)
def test_groups_of_wrong_types_are_an_error(server: api_server.ApiServer, kube: Kube, answer: Any) -> None:
    server.answers["GET /apis"] = (200, answer)
    with pytest.raises(ApiError, match="the answer is no list of API groups"):
        find_labelled(kube, MINE.selector)


@pytest.mark.parametrize("same", [True, False])
def test_a_list_without_an_end_is_an_error(
    server: api_server.ApiServer, kube: Kube, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_PAGES", 20)
    pages = iter(range(10**6))

    class Endless(dict[str, Any]):
        def get(self, asked: str, missing: Any = None) -> Any:
            if asked != PODS:
                return super().get(asked, missing)
            return 200, {"items": [POD], "metadata": {"continue": "again" if same else f"page {next(pages)}"}}

    server.answers = Endless(server.answers)
    with pytest.raises(ApiError, match="the list does not end"):
        kube.list("v1", "Pod", "mine")
    assert len(server.requests) <= 22


def test_all_pages_of_a_list_are_read(server: api_server.ApiServer, kube: Kube) -> None:
    pages = iter([{"items": [POD], "metadata": {"continue": "x"}}, {"items": [POD], "metadata": {}}])

    class Paged(dict[str, Any]):
        def get(self, asked: str, missing: Any = None) -> Any:
            return (200, next(pages)) if asked == PODS else super().get(asked, missing)

    server.answers = Paged(server.answers)
    assert len(kube.list("v1", "Pod", "mine")) == 2


def test_a_server_that_ignores_selectors_and_namespaces_makes_us_delete_nothing_of_others(
    server: api_server.ApiServer, kube: Kube
) -> None:
    server.answers[SLICES] = (200, {"items": [_slice("ours.example"), _slice("theirs.example")]})
    other = {"metadata": {"name": "other", "namespace": "theirs"}}
    server.answers[PODS] = (200, {"items": [POD, other]})
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "mine"}}

    assert [each["metadata"]["name"] for each in kube.list("v1", "Pod", "mine")] == ["p"]
    assert kube.list("v1", "Pod", "mine", labelSelector="a=b", fieldSelector="metadata.name=p") == []
    removal.remove(kube, [MINE.mark_driver(manifest, "ours.example")], ["ours.example"], Silent())

    assert [each for each in server.writes if "resourceslices" in each] == [
        "DELETE /apis/resource.k8s.io/v1/resourceslices/of-ours.example"
    ]


def test_an_item_that_claims_another_kind_is_not_deleted_as_that_kind(server: api_server.ApiServer, kube: Kube) -> None:
    liar = MINE.mark({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "tenant"}})
    server.answers["GET /api/v1/configmaps"] = (200, {"items": [liar]})
    (found,) = find_labelled(kube, MINE.selector).objects
    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


@pytest.mark.parametrize("status", [410, 429])
def test_a_storm_of_refusals_is_reported_after_one_request(
    server: api_server.ApiServer, kube: Kube, status: int
) -> None:
    kube.resource("v1", "Pod")
    server.every_answer = (status, {"reason": "Storm", "message": "x" * 10**6})
    with pytest.raises(ApiError) as refused:
        kube.list("v1", "Pod", "mine")
    assert refused.value.status == status
    assert len(str(refused.value)) < 10_000
    assert len(server.requests) == 2


Write = Callable[[Any], None]


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Callable[[Write], Kube]]:
    """Return a function that starts a server whose handler writes each answer itself, and returns a client for it."""
    servers: list[ThreadingHTTPServer] = []

    def start(write: Write) -> Kube:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    write(self.wfile)
                except OSError:  # the client has disconnected
                    return

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in http.server
                """Print nothing."""

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(http)
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        return Kube(api_server.ApiServer(f"http://127.0.0.1:{http.server_port}").kubeconfig(tmp_path))

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def test_a_very_long_answer_is_an_error_before_it_is_read_completely(raw: Callable[[Write], Kube]) -> None:
    sent = 0

    def write(out: Any) -> None:
        nonlocal sent
        out.write(_HEAD + b"Content-Length: 1000000000\r\n\r\n")
        while sent < 10**9:
            out.write(b"x" * 2**20)
            sent += 2**20

    with pytest.raises(ApiError, match="the answer is longer than 64 MiB"):
        raw(write).request("GET", "/version")
    assert sent < 100 * 2**20


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'Content-Length: 100\r\n\r\n{"gitVersion":', "no answer|ended after"),
        (b"Content-Length: 3\r\n\r\n{[}", "is not valid JSON"),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}", "no answer|not valid JSON"),
        (b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000, "is not valid JSON"),
    ],
    ids=["half", "no JSON", "half a chunk", "nested"],
)
def test_a_half_or_wrong_answer_is_an_error(raw: Callable[[Write], Kube], content: bytes, said: str) -> None:
    with pytest.raises(ApiError, match=said):
        raw(lambda out: out.write(_HEAD + content)).request("GET", "/version", timeout=1)


def test_an_answer_that_comes_byte_by_byte_is_an_error(
    raw: Callable[[Write], Kube], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_WHOLE_ANSWER", 0.5)

    def write(out: Any) -> None:
        out.write(_HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(200):
            out.write(b" ")
            threading.Event().wait(0.05)

    began = time.monotonic()
    with pytest.raises(ApiError, match="the answer was not complete after"):
        raw(write).request("GET", "/version", timeout=0.25)
    assert time.monotonic() - began < 5


def _watch(kube: Kube) -> list[Any]:
    kube._resources["v1", "Pod"] = client.Resource("v1", "pods", "Pod", namespaced=True)
    return list(kube.watch("v1", "Pod", seconds=1))


@pytest.mark.parametrize("event", [b"7", b"{}", b'{"type": 1, "object": {}}', b'{"type": "ADDED", "object": 7}', b"{"])
def test_a_watch_event_of_wrong_types_is_an_error(raw: Callable[[Write], Kube], event: bytes) -> None:
    with pytest.raises(ApiError, match="WATCH"):
        _watch(raw(lambda out: out.write(_HEAD + b"\r\n" + event + b"\n")))


def test_a_watch_event_without_an_end_is_an_error(
    raw: Callable[[Write], Kube], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MAX_BYTES", 2**20)

    def write(out: Any) -> None:
        out.write(_HEAD + b"\r\n")
        for _ in range(100):
            out.write(b"x" * 2**18)

    with pytest.raises(ApiError, match="an event is longer than 1 MiB"):
        _watch(raw(write))
