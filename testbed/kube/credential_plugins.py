"""Credentials that a program of the user gives (`exec` in a kubeconfig). The transport asks before the first request and when they end.

Not left to the official client, which only logs what fails and then asks as nobody. No word of the credentials gets into a message.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from testbed import process
from testbed.errors import CommandFailed, TestbedError, UsageError
from testbed.kube.kubeconfig import Access
from testbed.process import Completed

_PATIENCE = 60.0  # seconds; a plugin asks a server of its vendor
_TAKE_PRECEDENCE = ("auth-provider", "token", "tokenFile")  # with one of them nobody asks a plugin
_NOT_STARTED = ("not found", "cannot be started")
_CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


def resolve_credentials(access: Access) -> tuple[Access, datetime | None]:
    """The same with what its plugin gives now instead of the plugin, and until when that holds. Never to be written to a file."""
    user = access.user
    if not user.get("exec") or any(user.get(key) for key in _TAKE_PRECEDENCE):
        return access, None
    status = _Plugin(access, user["exec"]).status()
    given = {key: value for key, value in user.items() if key != "exec"} | _credentials(status)
    users = [{**access.content["users"][0], "user": given}]
    return replace(access, content={**access.content, "users": users}), _expiry(status)


class _Plugin:
    def __init__(self, access: Access, said: Any) -> None:
        if not isinstance(said, dict) or not all(said.get(key) for key in ("command", "apiVersion")):
            raise UsageError(f"kubeconfig {access.source}: exec of its user needs a command and an apiVersion")
        self._access, self._said = access, said
        self._name = f"credential plugin {said['command']} of {access}"

    def status(self) -> dict[str, Any]:
        """What it gives: a token, or a certificate with its key."""
        if self._said.get("interactiveMode") == "Always":
            hint = "log in first, and use a kubeconfig whose plugin needs nobody: interactiveMode: IfAvailable"
            raise UsageError(f"{self._name} asks questions, which nobody here can answer", hint=hint)
        done = self._done()
        if not done.ok:
            raise self._failed(f"failed (exit {done.code}): {_last_line(done.stderr)}")
        try:
            answer = json.loads(done.stdout)
            kinds, status = (answer["apiVersion"], answer["kind"]), answer["status"]
        except (ValueError, KeyError, TypeError):  # not chained: what it printed may be a secret
            raise self._failed("answered, but with no ExecCredential") from None
        if kinds != (self._said["apiVersion"], "ExecCredential"):
            raise self._failed(
                f"answered with another version or kind than ExecCredential of {self._said['apiVersion']}"
            )
        if not isinstance(status, dict) or not _is_complete(status):
            raise self._failed("gave neither a token nor a certificate with its key")
        return status

    def _done(self) -> Completed:
        words = [str(self._said["command"]), *map(str, self._said.get("args") or ())]
        try:
            more = {str(each["name"]): str(each["value"]) for each in self._said.get("env") or ()}
        except (KeyError, TypeError):  # not chained: a value may be a secret
            raise UsageError(f"{self._name}: its env must be a list of name and value") from None
        environment = {**os.environ, **more, "KUBERNETES_EXEC_INFO": json.dumps(self._question())}
        try:
            return process.run(words, check=False, timeout=_PATIENCE, env=environment)
        except CommandFailed as refused:  # not chained: the words after the command may hold a secret
            if refused.status in _NOT_STARTED:
                why = "is not there" if refused.status == "not found" else "cannot be started"
                hint = self._hint or f"install {words[0]}, or choose another --context"
                raise UsageError(f"{self._name} {why}", hint=hint) from None
            raise self._failed(f"gave {refused.status}: {_last_line(refused.output)}") from None

    def _question(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._said.get("provideClusterInfo"):
            spec["cluster"] = _cluster_info(self._access.content["clusters"][0]["cluster"])
        return {"apiVersion": self._said["apiVersion"], "kind": "ExecCredential", "spec": spec}

    @property
    def _hint(self) -> str:
        return " ".join(str(self._said.get("installHint") or "").split())

    def _failed(self, what: str) -> TestbedError:
        cure = f"does `kubectl --context {self._access.context} version` work? Whoever has to log in does it there"
        return TestbedError(f"{self._name} {what}", hint=f"{cure}. {self._hint}" if self._hint else cure)


def _is_complete(status: dict[str, Any]) -> bool:
    return bool(status.get("token") or (status.get("clientCertificateData") and status.get("clientKeyData")))


def _credentials(status: dict[str, Any]) -> dict[str, str]:
    pems = {"client-certificate-data": "clientCertificateData", "client-key-data": "clientKeyData"}
    given = {
        key: base64.b64encode(str(status[name]).encode()).decode() for key, name in pems.items() if status.get(name)
    }
    return given | ({"token": str(status["token"])} if status.get("token") else {})


def _expiry(status: dict[str, Any]) -> datetime | None:
    try:
        end = datetime.fromisoformat(str(status.get("expirationTimestamp", "")))
    except ValueError:
        return None
    return end if end.tzinfo else None


def _cluster_info(cluster: dict[str, Any]) -> dict[str, Any]:
    """The cluster for a plugin, with its own part of the kubeconfig."""
    told = {key: cluster[key] for key in _CLUSTER if cluster.get(key)}
    if cluster.get("certificate-authority") and Path(cluster["certificate-authority"]).is_file():
        data = Path(cluster["certificate-authority"]).read_bytes()
        told["certificate-authority-data"] = base64.b64encode(data).decode()
    own = [each for each in cluster.get("extensions") or () if each.get("name") == "client.authentication.k8s.io/exec"]
    return {**told, **({"config": own[0].get("extension")} if own else {})}


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
