"""A fake API server on the loopback interface, for errors of connections, credentials and discovery.

Unless a test changes `answers`, it is healthy: Kubernetes 1.37.1 with DRA, one node, and a user with all permissions.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

Answer = tuple[int, Any]
NODE = {"metadata": {"name": "n"}, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
_ALL = ["create", "delete", "get", "list", "patch", "watch"]
_KINDS = {
    "v1": [
        ("namespaces", "Namespace"),
        ("nodes", "Node"),
        ("pods", "Pod"),
        ("configmaps", "ConfigMap"),
        ("serviceaccounts", "ServiceAccount"),
    ],
    "resource.k8s.io/v1": [("resourceslices", "ResourceSlice"), ("deviceclasses", "DeviceClass")],
    "apps/v1": [("daemonsets", "DaemonSet")],
}
_CLUSTER_WIDE = ("namespaces", "nodes", "resourceslices", "deviceclasses")


def _resources(version: str) -> Any:
    listed = [
        {"name": plural, "kind": kind, "namespaced": plural not in _CLUSTER_WIDE, "verbs": _ALL}
        for plural, kind in _KINDS[version]
    ]
    return {"resources": listed}


def groups(*versions: str) -> Any:
    """Return the response of /apis for these group versions."""
    made = [{"groupVersion": each, "version": each.rpartition("/")[2]} for each in versions]
    return {
        "groups": [
            {"name": each["groupVersion"].rpartition("/")[0], "versions": [each], "preferredVersion": each}
            for each in made
        ]
    }


def rules_review(*rules: Any, incomplete: bool = False) -> Answer:
    """Return the response to a SelfSubjectRulesReview."""
    return 201, {"status": {"resourceRules": list(rules), "nonResourceRules": [], "incomplete": incomplete}}


EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def _healthy() -> dict[str, Answer]:
    return {
        "GET /version": (200, {"gitVersion": "v1.37.1"}),
        "GET /apis": (200, groups("resource.k8s.io/v1", "apps/v1")),
        "GET /api/v1": (200, _resources("v1")),
        "GET /apis/apps/v1": (200, _resources("apps/v1")),
        "GET /apis/resource.k8s.io/v1": (200, _resources("resource.k8s.io/v1")),
        "GET /api/v1/nodes": (200, {"items": [NODE]}),
        "GET /metrics": (403, {"reason": "Forbidden", "message": "no"}),
        "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews": rules_review(EVERYTHING),
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": (201, {"status": {"allowed": False}}),
    }


@dataclass
class ApiServer:
    """Its responses by method and path, and the requests that it got. `every_answer` is the response to all requests, if set."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=_healthy)
    every_answer: Answer | None = None
    requests: list[str] = field(default_factory=list)

    @property
    def writes(self) -> list[str]:
        """Return the requests that would have changed objects."""
        harmless = ("GET ", "POST /apis/authorization.k8s.io/")
        return [each for each in self.requests if not each.startswith(harmless)]

    def kubeconfig(self, folder: Path, **user: Any) -> Path:
        """Write a kubeconfig for the server and return its path."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": user or {"token": "secret"}}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(content))
        return file


@contextlib.contextmanager
def running() -> Iterator[ApiServer]:
    """Run a fake API server."""
    fake = ApiServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    fake.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _handler(fake: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = f"{self.command} {self.path.partition('?')[0]}"
            fake.requests.append(asked)
            missing = (404, {"kind": "Status", "reason": "NotFound", "message": "not here"})
            status, content = fake.every_answer or fake.answers.get(asked, missing)
            text = (content if isinstance(content, str) else json.dumps(content)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(content, str) else "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in http.server
            """Print nothing."""

    return Handler
