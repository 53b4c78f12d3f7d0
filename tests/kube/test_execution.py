"""Running programs in containers, over a fake websocket."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from websocket import ABNF, WebSocketConnectionClosedException, WebSocketException, WebSocketTimeoutException

from testbed.errors import ApiError, CommandFailed
from testbed.kube import execution
from testbed.kube.execution import execute, execute_unchecked

CONFIGURATION = SimpleNamespace(
    host="https://here:6443", proxy=None, verify_ssl=True, assert_hostname=None, ssl_ca_cert="ca.crt",
    cert_file="me.crt", key_file="me.key", tls_server_name="there",
)  # fmt: skip
TRANSPORT: Any = SimpleNamespace(
    configuration=CONFIGURATION, headers=lambda: urllib3.HTTPHeaderDict({"authorization": "Bearer x"})
)


class Socket:
    """A websocket with the frames that the server will send."""

    def __init__(self, stdout: bytes = b"", stderr: bytes = b"", status: Any = None, ends: Any = None) -> None:
        frames = [*(b"\x01%c" % each for each in stdout), b"\x02" + stderr, b"\x03" if status else b""]
        self.frames: list[Any] = [(ABNF.OPCODE_BINARY, each) for each in frames[:-1]]
        self.frames += [(ABNF.OPCODE_PING, b""), (ABNF.OPCODE_BINARY, frames[-1] + json.dumps(status).encode())]
        self.frames = self.frames if status else self.frames[:-1]
        self.frames.append(ends or (ABNF.OPCODE_CLOSE, b""))
        self.url, self.closed = "", False
        self.options: dict[str, Any] = {}
        self.tls: dict[str, Any] = {}

    def made(self, sslopt: dict[str, Any], **_: Any) -> Socket:
        self.tls = sslopt
        return self

    def connect(self, url: str, **options: Any) -> None:
        self.url, self.options = url, options

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def recv_data(self, control_frame: bool) -> Any:
        assert control_frame
        frame = self.frames.pop(0)
        if isinstance(frame, Exception):
            raise frame
        return frame

    def shutdown(self) -> None:
        self.closed = True


def _execute(monkeypatch: pytest.MonkeyPatch, socket: Socket) -> str:
    monkeypatch.setattr(execution, "WebSocket", socket.made)
    return execute(TRANSPORT, "/api/v1/namespaces/n/pods/p/exec", ["echo", "a b"], "c", timeout=1)


def test_the_output_of_a_program_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = Socket(stdout="A=ü\n".encode(), stderr=b"warning\n", status={"status": "Success"})
    assert _execute(monkeypatch, socket) == "A=ü\n"
    assert socket.url.startswith("wss://here:6443/api/v1/namespaces/n/pods/p/exec?command=echo&command=a+b&")
    assert socket.url.endswith("container=c")
    protocols = "Sec-WebSocket-Protocol: v5.channel.k8s.io,v4.channel.k8s.io"
    assert socket.options["header"] == ["authorization: Bearer x", protocols]
    assert socket.closed


def test_the_connection_has_the_tls_settings_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = Socket(status={"status": "Success"})
    _execute(monkeypatch, socket)
    files = {"ca_certs": "ca.crt", "certfile": "me.crt", "keyfile": "me.key", "server_hostname": "there"}
    assert files.items() < socket.tls.items()
    assert socket.tls["check_hostname"] is True


def test_a_status_is_enough_without_a_close_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = WebSocketConnectionClosedException("gone")
    assert _execute(monkeypatch, Socket(stdout=b"all", status={"status": "Success"}, ends=lost)) == "all"
    with pytest.raises(ApiError, match="no answer: gone"):
        _execute(monkeypatch, Socket(stdout=b"half", ends=lost))


def test_a_failed_program_is_an_error_with_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = {"status": "Failure", "message": "command terminated with non-zero exit code: 1"}
    socket = Socket(stderr=b"no such file", status=failure)
    with pytest.raises(CommandFailed, match="no such file"):
        _execute(monkeypatch, socket)
    assert socket.closed


def test_a_lost_connection_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandFailed, match="connection was lost"):
        _execute(monkeypatch, Socket(stdout=b"half"))


def test_a_program_that_does_not_finish_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = Socket(ends=WebSocketTimeoutException("late"))
    with pytest.raises(ApiError, match="did not finish within 1 s"):
        _execute(monkeypatch, socket)
    assert socket.closed


@pytest.mark.parametrize("lost", [WebSocketException("refused"), ConnectionResetError("reset")])
def test_a_failed_connection_is_an_api_error(monkeypatch: pytest.MonkeyPatch, lost: Exception) -> None:
    with pytest.raises(ApiError, match="no answer"):
        _execute(monkeypatch, Socket(ends=lost))


def _execute_unchecked(monkeypatch: pytest.MonkeyPatch, socket: Socket) -> Any:
    monkeypatch.setattr(execution, "WebSocket", socket.made)
    return execute_unchecked(TRANSPORT, "/api/v1/namespaces/n/pods/p/exec", ["ls"], None, timeout=1)


def test_unchecked_execution_returns_outputs_and_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    causes = {"causes": [{"reason": "ExitCode", "message": "3"}]}
    failure = {"status": "Failure", "message": "exit code 3", "details": causes}
    done = _execute_unchecked(monkeypatch, Socket(stdout=b"a", stderr=b"b", status=failure))
    assert (done.code, done.stdout, done.stderr) == (3, "a", "b")
    assert _execute_unchecked(monkeypatch, Socket(stdout=b"a", status={"status": "Success"})).ok


@pytest.mark.parametrize("status", [None, {"status": "Failure", "message": "container not found"}])
def test_unchecked_execution_without_an_exit_code_is_an_error(monkeypatch: pytest.MonkeyPatch, status: Any) -> None:
    with pytest.raises(ApiError):
        _execute_unchecked(monkeypatch, Socket(status=status))
