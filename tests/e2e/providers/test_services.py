"""Services and DNS on the local provider: names, balancing, webhooks, and what nodes answer for names and addresses of clouds."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from testbed import images, process
from testbed.bringup import Testbed
from testbed.errors import ApiError
from testbed.progress import Silent
from testbed.providers.base import LoadsImages
from testbed.providers.local.certificates import Authority
from testbed.waiting import Budget, NotYet, eventually

NEW = Budget("new Service", 30, "its endpoints, and the rules that kube-proxy writes at most once per second")
CLIENT = "for i in $(seq 20); do wget -qO- http://echo; done"
SERVER = "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\n%s\\n' $HOSTNAME | nc -l -p 8080; done"
REFUSING = """
import http.server, json, ssl

class Webhook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "refused by the webhook"}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({**review, "response": answer}).encode())

server = http.server.HTTPServer(("", 8443), Webhook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
TIMED = (
    "import errno, socket, time\nstarted = time.monotonic()\n"
    "for family, address in ((socket.AF_INET, '169.254.169.254'), (socket.AF_INET6, 'fd00:ec2::254')):\n"
    "    with socket.socket(family) as client:\n        client.settimeout(20)\n"
    "        print(errno.errorcode[client.connect_ex((address, 80))])\n"
    "print(time.monotonic() - started < 3)"
)


def service(name: str, port: int, target: int) -> dict[str, Any]:
    """Return a Service whose pods have the label app=NAME."""
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_a_pod_resolves_the_names_of_services_and_no_others(kubectl: Any) -> None:
    kubectl.run_pod("resolver", "sleep 3600")
    connect = ("wget", "-qO-", "http://kubernetes.default.svc:443")

    def known() -> None:
        seen = kubectl("exec", "resolver", "--", *connect, check=False)
        if "400 Bad Request" not in seen.stderr:
            raise NotYet(seen.stdout + seen.stderr)

    eventually(known, "kubernetes.default.svc to be known", NEW)
    foreign = kubectl("exec", "resolver", "--", "nslookup", "metadata.google.internal", check=False)
    assert "NXDOMAIN" in foreign.stdout + foreign.stderr


def test_a_service_balances_over_pods_on_two_nodes(testbed: Testbed, kubectl: Any) -> None:
    for node in ("node-1", "node-2"):
        kubectl.run_pod(f"echo-{node}", SERVER, node)
        kubectl("label", "pod", f"echo-{node}", "app=echo")
    testbed.kube.create(service("echo", 80, 8080))
    kubectl.run_pod("client", "sleep 3600")

    def both() -> None:
        seen = kubectl("exec", "client", "--", "sh", "-c", CLIENT, check=False)
        if set(seen.stdout.split()) != {"echo-node-1", "echo-node-2"}:
            raise NotYet(seen.stdout + seen.stderr)

    eventually(both, "answers of both pods", NEW)


@pytest.fixture
def webhook(testbed: Testbed, kubectl: Any, tmp_path: Path) -> None:
    """Run a webhook server in a pod, behind a Service."""
    cluster = testbed.cluster
    assert isinstance(cluster, LoadsImages)
    image = images.driver(Silent())
    cluster.load_image(image.archive)
    authority = Authority("webhook")
    certificate, key = authority.issue("webhook", names=("refuser.default.svc",)).write(tmp_path, "tls")
    kubectl("create", "secret", "tls", "refuser", f"--cert={certificate}", f"--key={key}")
    kubectl("create", "configmap", "refuser", f"--from-literal=server.py={REFUSING}")
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("tls", "code")]
    volumes = [
        {"name": "tls", "secret": {"secretName": "refuser"}},
        {"name": "code", "configMap": {"name": "refuser"}},
    ]
    container = {
        "name": "main",
        "image": image.reference,
        "command": ["python3", "/code/server.py"],
        "volumeMounts": mounts,
    }
    named = {"name": "refuser", "namespace": "default", "labels": {"app": "refuser"}}
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 0}
    testbed.kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec})
    testbed.kube.create(service("refuser", 443, 8443))
    bundle = base64.b64encode(authority.pair.certificate).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    testbed.kube.create(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "refuser"},
            "webhooks": [
                {
                    "name": "refuser.example.com",
                    "clientConfig": {"service": {"name": "refuser", "namespace": "default"}, "caBundle": bundle},
                    "rules": [rule],
                    "objectSelector": {"matchLabels": {"refuse": "me"}},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
    )


@pytest.mark.usefixtures("webhook")
def test_the_api_server_calls_a_webhook_by_its_service(testbed: Testbed) -> None:
    labelled = {"name": "refused", "namespace": "default", "labels": {"refuse": "me"}}

    def refused() -> None:
        try:
            testbed.kube.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labelled}, dry_run=True)
        except ApiError as refusal:
            if "refused by the webhook" not in str(refusal):
                raise NotYet(str(refusal)) from refusal
        else:
            raise NotYet("created")

    eventually(refused, "the webhook to be called", NEW)


def test_a_node_that_rebooted_has_the_services_again(testbed: Testbed, kubectl: Any) -> None:
    cluster: Any = testbed.cluster
    cluster.reboot("node-2")

    assert {each.name for each in cluster.components() if each.alive} >= {"node-1/kube-proxy", "node-2/kube-proxy"}
    rules = process.run(["nft", "list", "tables"]).stdout
    assert "kube-proxy" not in rules, "the rules of nodes must not be on this host"


def test_cloud_metadata_addresses_are_unreachable_at_once_from_a_node(testbed: Testbed) -> None:
    seen = testbed.cluster.nodes()[0].run("python3", "-c", TIMED).stdout

    assert seen.split() == ["EHOSTUNREACH", "ENETUNREACH", "True"]


def test_the_resolver_of_a_node_knows_no_names(testbed: Testbed) -> None:
    node = testbed.cluster.nodes()[0]
    for name in ("example.com", "kubernetes.default.svc.cluster.local"):
        assert node.run("getent", "hosts", name, check=False, timeout=2).code == 2


def test_the_components_of_services_are_in_the_status(testbed: Testbed) -> None:
    assert {each.name for each in testbed.cluster.components() if each.alive} >= {
        "control-plane/coredns",
        "node-1/kube-proxy",
    }
