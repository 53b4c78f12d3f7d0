"""Runs credential plugins (`exec` in a kubeconfig) for the transport: before the first request, and when the credentials expire.

The official client is not used because it only logs failures and continues without credentials. No message contains credentials.
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
from testbed.redaction import redactor

_TIMEOUT = 60.0  # seconds; a plugin may contact a server of its vendor
_TAKE_PRECEDENCE = ("auth-provider", "token", "tokenFile")  # if one of them is set, the plugin is not used
_NOT_STARTED = ("not found", "cannot be started")
_CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


def resolve_credentials(access: Access) -> tuple[Access, datetime | None]:
    """Return the access with credentials of the plugin in its place, and when they expire. Never write it to a file."""
    user = access.user
    if not user.get("exec") or any(user.get(key) for key in _TAKE_PRECEDENCE):
        return access, None
    status = _Plugin(access, user["exec"]).status()
    resolved = {key: value for key, value in user.items() if key != "exec"} | _credentials(status)
    redactor.register_credentials(resolved)
    users = [{**access.content["users"][0], "user": resolved}]
    return replace(access, content={**access.content, "users": users}), _expiry(status)


class _Plugin:
    def __init__(self, access: Access, config: Any) -> None:
        if not isinstance(config, dict) or not all(config.get(key) for key in ("command", "apiVersion")):
            raise UsageError(f"kubeconfig {access.source}: exec of its user needs a command and an apiVersion")
        self._access, self._config = access, config
        self._name = f"credential plugin {config['command']} of {access}"

    def status(self) -> dict[str, Any]:
        """Run the plugin and return the credentials: a token, or a certificate with its key."""
        if self._config.get("interactiveMode") == "Always":
            hint = "log in first, and set interactiveMode: IfAvailable in the kubeconfig"
            raise UsageError(f"{self._name} requires interactive input, which is not possible here", hint=hint)
        done = self._run()
        if not done.ok:
            raise self._failed(f"failed (exit {done.code}): {_last_line(done.stderr)}")
        try:
            answer = json.loads(done.stdout)
            kinds, status = (answer["apiVersion"], answer["kind"]), answer["status"]
        except (ValueError, KeyError, TypeError):  # not chained: the output may contain secrets
            raise self._failed("did not print an ExecCredential") from None
        if kinds != (self._config["apiVersion"], "ExecCredential"):
            raise self._failed(f"printed another version or kind than ExecCredential of {self._config['apiVersion']}")
        if not isinstance(status, dict) or not _is_complete(status):
            raise self._failed("printed neither a token nor a certificate with its key")
        return status

    def _run(self) -> Completed:
        argv = [str(self._config["command"]), *map(str, self._config.get("args") or ())]
        try:
            variables = {str(each["name"]): str(each["value"]) for each in self._config.get("env") or ()}
        except (KeyError, TypeError):  # not chained: a value may be a secret
            raise UsageError(f"{self._name}: its env must be a list of names and values") from None
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(self._exec_info())}
        try:
            return process.run(argv, check=False, timeout=_TIMEOUT, env=environment)
        except CommandFailed as refused:  # not chained: arguments may contain secrets
            if refused.status in _NOT_STARTED:
                reason = "was not found" if refused.status == "not found" else "cannot be started"
                hint = self._hint or f"install {argv[0]}, or choose another --context"
                raise UsageError(f"{self._name} {reason}", hint=hint) from None
            raise self._failed(f"{refused.status}: {_last_line(refused.output)}") from None

    def _exec_info(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": False}
        if self._config.get("provideClusterInfo"):
            spec["cluster"] = _cluster_info(self._access.content["clusters"][0]["cluster"])
        return {"apiVersion": self._config["apiVersion"], "kind": "ExecCredential", "spec": spec}

    @property
    def _hint(self) -> str:
        return " ".join(str(self._config.get("installHint") or "").split())

    def _failed(self, what: str) -> TestbedError:
        hint = f"run `kubectl --context {self._access.context} version`, and log in there if it asks for that"
        return TestbedError(f"{self._name} {what}", hint=f"{hint}. {self._hint}" if self._hint else hint)


def _is_complete(status: dict[str, Any]) -> bool:
    return bool(status.get("token") or (status.get("clientCertificateData") and status.get("clientKeyData")))


def _credentials(status: dict[str, Any]) -> dict[str, str]:
    pems = {"client-certificate-data": "clientCertificateData", "client-key-data": "clientKeyData"}
    credentials = {
        key: base64.b64encode(str(status[name]).encode()).decode() for key, name in pems.items() if status.get(name)
    }
    return credentials | ({"token": str(status["token"])} if status.get("token") else {})


def _expiry(status: dict[str, Any]) -> datetime | None:
    try:
        expiry = datetime.fromisoformat(str(status.get("expirationTimestamp", "")))
    except ValueError:
        return None
    return expiry if expiry.tzinfo else None


def _cluster_info(cluster: dict[str, Any]) -> dict[str, Any]:
    """Return the cluster for KUBERNETES_EXEC_INFO, with the plugin's own part of the kubeconfig."""
    info = {key: cluster[key] for key in _CLUSTER if cluster.get(key)}
    if cluster.get("certificate-authority") and Path(cluster["certificate-authority"]).is_file():
        data = Path(cluster["certificate-authority"]).read_bytes()
        info["certificate-authority-data"] = base64.b64encode(data).decode()
    own = [each for each in cluster.get("extensions") or () if each.get("name") == "client.authentication.k8s.io/exec"]
    return {**info, **({"config": own[0].get("extension")} if own else {})}


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")
