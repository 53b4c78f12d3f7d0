"""Run a program in a container, over the API server's websocket. Called by Kube.exec and Kube.attempt alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from kubernetes.stream import ws_client
from websocket import WebSocketException

from testbed.errors import ApiError, CommandFailed
from testbed.process import Completed


def execute(configuration: Any, path: str, command: Sequence[str], container: str | None, timeout: float) -> str:
    """What the program printed. CommandFailed for its bad status, ApiError where it could not be asked."""
    done, status = _executed(configuration, path, command, container, timeout)
    if status.get("status") != "Success":
        raise CommandFailed(command, status.get("message", "the connection was lost"), done.stderr or done.stdout)
    return done.stdout


def attempt(configuration: Any, path: str, command: Sequence[str], container: str | None, timeout: float) -> Completed:
    """What became of the program, whatever its status; ApiError where it could not be asked or its status was lost."""
    done, status = _executed(configuration, path, command, container, timeout)
    if status.get("status") != "Success" and not done.code:
        raise ApiError(f"EXEC {path}", 0, "", str(status.get("message", "the connection was lost")))
    return done


def _executed(
    configuration: Any, path: str, command: Sequence[str], container: str | None, timeout: float
) -> tuple[Completed, dict[str, Any]]:
    wanted = [("command", word) for word in command] + [("stdout", "true"), ("stderr", "true")]
    query = urlencode([*wanted, *([("container", container)] if container else [])])
    headers = {each["key"]: each["value"] for each in configuration.auth_settings().values()}
    url = ws_client.get_websocket_url(f"{configuration.host}{path}?{query}")
    try:
        client = ws_client.WSClient(configuration, url, headers, capture_all=False)
        try:
            client.run_forever(timeout=timeout)
            if client.is_open():
                raise ApiError(f"EXEC {path}", 0, "", f"{command[0]} did not end in {timeout:g} s")
            said, complaint = client.read_stdout(), client.read_stderr()
            status = json.loads(client.read_channel(ws_client.ERROR_CHANNEL) or "{}")
        finally:
            client.sock.shutdown()  # its close() forgets the socket when the server has said goodbye first
    except (WebSocketException, OSError, ValueError) as lost:
        raise ApiError(f"EXEC {path}", getattr(lost, "status_code", 0), "", f"no answer: {lost}") from lost
    return Completed(tuple(command), _code(status), str(said), str(complaint)), status


def _code(status: dict[str, Any]) -> int:
    causes = (status.get("details") or {}).get("causes") or ()
    return next((int(each["message"]) for each in causes if each.get("reason") == "ExitCode"), 0)
