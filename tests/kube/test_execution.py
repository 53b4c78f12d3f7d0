from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.stream import ws_client
from websocket import WebSocketException

from testbed.errors import ApiError, CommandFailed
from testbed.kube.execution import attempt, execute

CONFIGURATION = SimpleNamespace(
    host="https://here:6443", auth_settings=lambda: {"token": {"key": "authorization", "value": "Bearer x"}}
)


class Socket:
    """The official client's websocket, with what it will say."""

    def __init__(self, stdout: str = "", stderr: str = "", status: Any = None, hangs: bool = False) -> None:
        self.stdout, self.stderr, self.status, self.hangs = stdout, stderr, status, hangs
        self.url, self.closed = "", False
        self.headers: dict[str, str] = {}
        self.sock = SimpleNamespace(shutdown=self._shut_down)

    def opened(self, _configuration: Any, url: str, headers: dict[str, str], **_: Any) -> Socket:
        self.url, self.headers = url, headers
        return self

    def run_forever(self, timeout: float) -> None:
        assert timeout > 0

    def is_open(self) -> bool:
        return self.hangs

    def read_stdout(self) -> str:
        return self.stdout

    def read_stderr(self) -> str:
        return self.stderr

    def read_channel(self, channel: int) -> str:
        assert channel == ws_client.ERROR_CHANNEL
        return json.dumps(self.status) if self.status else ""

    def _shut_down(self) -> None:
        self.closed = True


def _execute(monkeypatch: pytest.MonkeyPatch, socket: Socket) -> str:
    monkeypatch.setattr(ws_client, "WSClient", socket.opened)
    return execute(CONFIGURATION, "/api/v1/namespaces/n/pods/p/exec", ["echo", "a b"], "c", timeout=1)


def test_what_a_program_prints_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = Socket(stdout="A=1\n", stderr="warning\n", status={"status": "Success"})
    assert _execute(monkeypatch, socket) == "A=1\n"
    assert socket.url.startswith("wss://here:6443/api/v1/namespaces/n/pods/p/exec?command=echo&command=a+b&")
    assert socket.url.endswith("container=c")
    assert socket.headers == {"authorization": "Bearer x"}
    assert socket.closed


def test_a_program_that_ends_badly_is_shown_with_its_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = {"status": "Failure", "message": "command terminated with non-zero exit code: 1"}
    socket = Socket(stderr="no such file", status=failure)
    with pytest.raises(CommandFailed, match="no such file"):
        _execute(monkeypatch, socket)
    assert socket.closed


def test_a_connection_that_is_cut_is_not_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandFailed, match="connection was lost"):
        _execute(monkeypatch, Socket(stdout="half"))


def test_a_program_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = Socket(hangs=True)
    with pytest.raises(ApiError, match="did not end in 1 s"):
        _execute(monkeypatch, socket)
    assert socket.closed


@pytest.mark.parametrize("lost", [WebSocketException("refused"), ConnectionResetError("reset")])
def test_a_server_that_cannot_be_asked_is_an_api_error(monkeypatch: pytest.MonkeyPatch, lost: Exception) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise lost

    monkeypatch.setattr(ws_client, "WSClient", refuse)
    with pytest.raises(ApiError, match="no answer"):
        execute(CONFIGURATION, "/x", ["true"], None, timeout=1)


def _attempt(monkeypatch: pytest.MonkeyPatch, socket: Socket) -> Any:
    monkeypatch.setattr(ws_client, "WSClient", socket.opened)
    return attempt(CONFIGURATION, "/api/v1/namespaces/n/pods/p/exec", ["ls"], None, timeout=1)


def test_an_attempt_keeps_both_outputs_and_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    causes = {"causes": [{"reason": "ExitCode", "message": "3"}]}
    failure = {"status": "Failure", "message": "exit code 3", "details": causes}
    done = _attempt(monkeypatch, Socket(stdout="a", stderr="b", status=failure))
    assert (done.code, done.stdout, done.stderr) == (3, "a", "b")
    assert _attempt(monkeypatch, Socket(stdout="a", status={"status": "Success"})).ok


@pytest.mark.parametrize("status", [None, {"status": "Failure", "message": "container not found"}])
def test_an_attempt_without_a_status_of_the_program_is_an_error(monkeypatch: pytest.MonkeyPatch, status: Any) -> None:
    with pytest.raises(ApiError):
        _attempt(monkeypatch, Socket(status=status))
