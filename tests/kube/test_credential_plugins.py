"""Credential plugins: their credentials are used, and failures are one message without secrets."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.kube import credential_plugins
from testbed.kube.client import Kube
from testbed.kube.kubeconfig import Access, load_access
from tests.fakes import api_server
from tests.fakes.api_server import ApiServer

VERSION = "client.authentication.k8s.io/v1"


def _plugin(folder: Path, script: str) -> str:
    file = folder / "give-token"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IEXEC)
    return str(file)


def _access(folder: Path, script: str, **fields: Any) -> Access:
    config = {"apiVersion": VERSION, "command": _plugin(folder, script), **fields}
    return load_access(ApiServer("http://127.0.0.1:1").kubeconfig(folder, exec=config), None)


def _giving(status: Any, version: str = VERSION) -> str:
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return f"echo '{answer}'"


def test_credentials_replace_the_plugin_and_are_not_written(tmp_path: Path) -> None:
    found = _access(tmp_path, _giving({"token": "SECRET", "expirationTimestamp": "2030-01-01T00:00:00Z"}))
    given, end = credential_plugins.resolve_credentials(found)
    assert given.user == {"token": "SECRET"}
    assert end == datetime(2030, 1, 1, tzinfo=UTC)
    assert "exec" in found.user
    assert "SECRET" not in str(found.content)


def test_a_certificate_is_used_with_its_key(tmp_path: Path) -> None:
    found = _access(tmp_path, _giving({"clientCertificateData": "PEM", "clientKeyData": "KEY"}))
    given, end = credential_plugins.resolve_credentials(found)
    user = given.loadable()["users"][0]["user"]
    assert {name: Path(file).read_text() for name, file in user.items()} == {
        "client-certificate": "PEM",
        "client-key": "KEY",
    }
    assert end is None


def test_a_plugin_is_not_run_if_there_is_a_token(tmp_path: Path) -> None:
    content = ApiServer("http://127.0.0.1:1").kubeconfig(
        tmp_path, token="t", exec={"command": "/none", "apiVersion": "v"}
    )
    found = load_access(content, None)
    assert credential_plugins.resolve_credentials(found) == (found, None)


def test_a_plugin_gets_arguments_environment_and_cluster(tmp_path: Path) -> None:
    script = f'echo "$1 $MORE" > {tmp_path}/received; echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; ' + _giving(
        {"token": "t"}
    )
    more = [{"name": "MORE", "value": "2"}]
    credential_plugins.resolve_credentials(_access(tmp_path, script, args=["1"], env=more, provideClusterInfo=True))
    info = json.loads((tmp_path / "info").read_text())
    assert (tmp_path / "received").read_text() == "1 2\n"
    assert info["spec"] == {"interactive": False, "cluster": {"server": "http://127.0.0.1:1"}}
    assert (info["apiVersion"], info["kind"]) == (VERSION, "ExecCredential")


def test_a_missing_plugin_is_a_usage_error(tmp_path: Path) -> None:
    config = {"apiVersion": VERSION, "command": "aws-missing", "args": ["SECRET"], "installHint": "Get it\nfrom here."}
    found = load_access(ApiServer("http://127.0.0.1:1").kubeconfig(tmp_path, exec=config), None)
    with pytest.raises(
        UsageError, match=r"credential plugin aws-missing of http.* was not found\n  try: Get it from here."
    ):
        credential_plugins.resolve_credentials(found)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo first >&2; echo your session is over >&2; echo SECRET; exit 3",
            r"failed \(exit 3\): your session is over",
        ),
        ("exit 1", r"failed \(exit 1\): no output"),
        ("echo SECRET", "did not print an ExecCredential"),
        ("echo '[\"SECRET\"]'", "did not print an ExecCredential"),
        (_giving({"token": ""}), "printed neither a token nor a certificate"),
        (_giving({"clientCertificateData": "SECRET"}), "printed neither a token nor a certificate"),
        (_giving(None), "printed neither a token nor a certificate"),
        (_giving({"token": "SECRET"}, "other/v1"), "printed another version"),
    ],
)
def test_a_failure_is_one_message_without_secrets(tmp_path: Path, script: str, message: str) -> None:
    found = _access(
        tmp_path, script, args=["SECRET"], env=[{"name": "A", "value": "SECRET"}], installHint="Log in first."
    )
    with pytest.raises(TestbedError, match=f"credential plugin .*give-token of http.*{message}") as failed:
        credential_plugins.resolve_credentials(found)
    assert "Log in first." in failed.value.hint
    assert "SECRET" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_a_plugin_that_does_not_finish_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential_plugins, "_TIMEOUT", 0.2)
    with pytest.raises(TestbedError, match=r"timed out after 0\.2 s: visit me"):
        credential_plugins.resolve_credentials(_access(tmp_path, "echo visit me >&2; sleep 60"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"interactiveMode": "Always"}, "requires interactive input"),
        ({"env": [{"SECRET": 1}]}, "its env must be a list"),
        ({"apiVersion": ""}, "needs a command and an apiVersion"),
    ],
)
def test_an_invalid_plugin_configuration_is_a_usage_error(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        credential_plugins.resolve_credentials(_access(tmp_path, "true", **more))


def test_a_plugin_is_run_again_when_the_credentials_expire(tmp_path: Path) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    script = f"echo x >> {tmp_path}/runs; " + _giving({"token": "t", "expirationTimestamp": soon})
    with api_server.running() as server:
        config = {"apiVersion": VERSION, "command": _plugin(tmp_path, script)}
        kube = Kube(server.kubeconfig(tmp_path, exec=config))
        kube.request("GET", "/version")
    assert len((tmp_path / "runs").read_text().split()) >= 2


def test_a_plugin_is_run_once_while_the_credentials_are_valid(tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/runs; " + _giving({"token": "t"})
    with api_server.running() as server:
        kube = Kube(server.kubeconfig(tmp_path, exec={"apiVersion": VERSION, "command": _plugin(tmp_path, script)}))
        kube.request("GET", "/version")
        kube.request("GET", "/version")
    assert (tmp_path / "runs").read_text() == "x\n"
