"""Waits until what the local provider started is ready: by a TLS request to the API server, by a connection to a socket."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import tempfile
from pathlib import Path

from testbed import process, state_files
from testbed.errors import TestbedError
from testbed.process import ProcessId, UnexpectedExit
from testbed.providers.local.addresses import Addresses
from testbed.providers.local.layout import Layout
from testbed.providers.local.namespaces import Machine, last_line
from testbed.waiting import Budget, NotYet, eventually

_API_SERVER = Budget("API server ready", 60, "2 s on a quiet machine; a slow or emulated one takes most of a minute")
_KUBELET = Budget("kubelet serving", 30, "0.5 s on a quiet machine")
_SOCKET = Budget("container runtime ready", 30, "0.3 s on a quiet machine; it reads its whole state when it starts")


def api_server_ready(layout: Layout, addresses: Addresses, server: ProcessId | None) -> None:
    """Wait until /readyz answers 200. Raise an error at once if the process has exited."""
    log = layout.log("kube-apiserver")
    context = _context(layout)

    def check() -> None:
        _check_running(server, "kube-apiserver", log)
        connection = http.client.HTTPSConnection(addresses.control_plane, 443, context=context, timeout=2)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            body = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as nothing:
            raise NotYet(f"{type(nothing).__name__}: {nothing}; last line of the log: {last_line(log)}") from nothing
        finally:
            connection.close()
        if answer.status != 200:
            raise NotYet(
                f"/readyz: {answer.status}: " + ", ".join(line for line in body.splitlines() if line.startswith("[-]"))
            )

    eventually(check, "the API server to be ready", _API_SERVER, hint=f"see {log}", longest_pause=0.1)


def socket_answers(machine: Machine, server: ProcessId, path: str, log: Path) -> None:
    """Wait until a socket in a machine accepts connections."""

    def check() -> None:
        _check_running(server, path, log)
        on_host = f"/proc/{machine.checked_pid()}/root{path}"
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(on_host)
            except OSError as nothing:
                raise NotYet(f"{nothing}; last line of the log: {last_line(log)}") from nothing

    eventually(check, f"{path} on {machine.folder.name}", _SOCKET, hint=f"see {log}", longest_pause=0.05)


def kubelet_serves(address: str, kubelet: ProcessId | None, log: Path) -> None:
    """Wait until a kubelet accepts connections. Raise an error if it has exited, as it does without a container runtime."""

    def check() -> None:
        _check_running(kubelet, "the kubelet", log)
        try:
            socket.create_connection((address, 10250), timeout=1).close()
        except OSError as nothing:
            raise NotYet(f"{nothing}; last line of the log: {last_line(log)}") from nothing

    eventually(check, f"the kubelet at {address}", _KUBELET, hint=f"see {log}", longest_pause=0.1)


def _context(layout: Layout) -> ssl.SSLContext:
    """Return a TLS context with the administrator's client certificate."""
    context = ssl.create_default_context(cafile=str(layout.pki / "ca.crt"))
    file = layout.pki / "admin.kubeconfig"
    pair = state_files.read(file, _client_certificate)
    if pair is None:
        raise TestbedError(
            f"{file} does not exist", hint="remove the testbed with `dra-testbed down`, and bring it up again"
        )
    with tempfile.NamedTemporaryFile(dir=layout.pki) as pem:
        pem.write(pair)
        pem.flush()
        context.load_cert_chain(pem.name)
    return context


def _client_certificate(kubeconfig: state_files.Content) -> bytes:
    """Return the administrator's certificate and key."""
    (entry,) = kubeconfig["users"]
    user = entry["user"]
    return base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])


def _check_running(server: ProcessId | None, name: str, log: Path) -> None:
    if server is None or not process.alive(server):
        raise UnexpectedExit(
            f"{name} exited before it was ready\n  last line of its log: {last_line(log)}", hint=f"see {log}"
        )
