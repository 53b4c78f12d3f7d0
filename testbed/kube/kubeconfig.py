"""Finds a kubeconfig as kubectl does and extracts one context, so that the copy works from any folder and reaches only that cluster.

Several files are merged as kubectl merges them: the first one with a value wins.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509

from testbed.errors import UsageError, did_you_mean
from testbed.redaction import redactor

_FILES = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
_DATA = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key")}
Entry = dict[str, Any]


@dataclass(frozen=True)
class Access:
    """Access to one cluster as one user: a kubeconfig with only this context, and its name and source for messages."""

    content: Entry
    context: str
    source: str

    @property
    def server(self) -> str:
        """Return the API server's address."""
        return str(self.content["clusters"][0]["cluster"].get("server", ""))

    @property
    def user(self) -> Entry:
        """Return the user entry, with its credentials."""
        return dict(self.content["users"][0]["user"]) if self.content["users"] else {}

    def loadable(self) -> Entry:
        """Return the content with keys in files, as the transport needs them: in memory, so that a killed process leaves none behind."""
        clusters = [_without_data(each, "cluster", self.source) for each in self.content["clusters"]]
        users = [_without_data(each, "user", self.source) for each in self.content["users"]]
        return {**self.content, "clusters": clusters, "users": users}

    def write(self, file: Path) -> None:
        """Write the kubeconfig, readable only by its owner."""
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            yaml.safe_dump(self.content, out, sort_keys=False)

    def expired(self) -> str:
        """Return which credentials have expired, and when; '' if none is known to have."""
        now = datetime.now(UTC)
        ends = {"client certificate": _certificate_end(self.user), "token": _token_end(str(self.user.get("token", "")))}
        old = [f"its {what} expired on {end:%Y-%m-%d %H:%M} UTC" for what, end in ends.items() if end and end < now]
        return "; ".join(old)

    def __str__(self) -> str:
        return f"{self.server} (context {self.context} of {self.source})"


def load_access(file: Path | None, context: str | None) -> Access:
    """Return access to the cluster of a context (default: the current one). Raise UsageError if the kubeconfig lacks something."""
    files = [file] if file else _default_files()
    documents = [_Document(path, _read(path)) for path in files]
    source = ":".join(map(str, files))
    wanted = context or next((name for each in documents if (name := each.content.get("current-context"))), "")
    known = [str(entry.get("name")) for each in documents for entry in each.entries("contexts")]
    if not wanted:
        hint = f"add --context NAME; known: {', '.join(known)}" if known else "is it the right file?"
        raise UsageError(f"kubeconfig {source} has no current context", hint=hint)
    chosen = _find_entry(documents, "contexts", wanted)
    if chosen is None:
        raise UsageError(f"kubeconfig {source} has no context {wanted}", hint=did_you_mean(wanted, known))
    return _minified(documents, wanted, chosen, source)


@dataclass(frozen=True)
class _Document:
    path: Path
    content: Entry

    def entries(self, section: str) -> Iterator[Entry]:
        """Yield the entries of a section, with absolute paths."""
        for entry in self.content.get(section) or ():
            if isinstance(entry, dict):
                yield {key: self._absolute(key, value) for key, value in entry.items()}

    def _absolute(self, key: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        absolute: Entry = {name: str(self._path(value[name])) for name in _FILES.get(key, ()) if value.get(name)}
        program = value.get("exec", {}).get("command", "") if isinstance(value.get("exec"), dict) else ""
        if "/" in program:
            absolute["exec"] = {**value["exec"], "command": str(self._path(program))}
        return {**value, **absolute}

    def _path(self, path: str) -> Path:
        return self.path.absolute().parent / Path(path).expanduser()


def _minified(documents: list[_Document], name: str, chosen: Entry, source: str) -> Access:
    context = chosen.get("context") or {}
    cluster = _find_entry(documents, "clusters", context.get("cluster"))
    user = _find_entry(documents, "users", context.get("user"))
    if cluster is None or not (cluster.get("cluster") or {}).get("server"):
        raise UsageError(
            f"kubeconfig {source}: context {name} refers to cluster {context.get('cluster')}, which has no server"
        )
    if context.get("user") and user is None:
        raise UsageError(f"kubeconfig {source}: context {name} refers to user {context['user']}, which does not exist")
    redactor.register_credentials((user or {}).get("user"))
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [chosen],
        "clusters": [cluster],
        "users": [user] if user else [],
    }
    return Access(content, name, source)


def _default_files() -> list[Path]:
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    candidates = named or [Path.home() / ".kube/config"]
    files = [path for path in candidates if path.is_file()]
    if not files:
        paths = ", ".join(map(str, candidates))
        raise UsageError(f"no kubeconfig found at {paths}", hint="add --kubeconfig FILE")
    return files


def _read(path: Path) -> Entry:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as bad:
        raise UsageError(f"kubeconfig {path} cannot be read: {bad.strerror}") from bad
    except (UnicodeDecodeError, yaml.YAMLError) as bad:
        # Not chained: the parser's message quotes the file, which may contain secrets.
        raise UsageError(f"kubeconfig {path} cannot be read: {_reason(bad)}") from None
    if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
        raise UsageError(f"{path} is not a kubeconfig", hint="a kubeconfig has apiVersion: v1 and kind: Config")
    return content


def _reason(bad: Exception) -> str:
    """Return what is wrong and on which line, without quoting the file."""
    if not isinstance(bad, yaml.MarkedYAMLError):
        return "it is not UTF-8 text" if isinstance(bad, UnicodeDecodeError) else "it is not YAML"
    line = f"line {bad.problem_mark.line + 1}: " if bad.problem_mark else ""
    return line + re.sub(r"(['\"])(?!<)..+\1", "something", bad.problem or "it is not YAML")


def _without_data(entry: Entry, key: str, source: str) -> Entry:
    fields = dict(entry.get(key) or {})
    for name in _DATA[key]:
        data = fields.pop(f"{name}-data", None)
        try:
            fields |= {name: _in_memory(base64.b64decode("".join(data.split()), validate=True))} if data else {}
        except (AttributeError, ValueError) as bad:
            raise UsageError(f"kubeconfig {source}: {name}-data of {key} {entry['name']} is not base64") from bad
    return {**entry, key: fields}


@functools.cache
def _in_memory(content: bytes) -> str:
    file = os.memfd_create("dra-testbed")
    with os.fdopen(file, "wb", closefd=False) as out:
        out.write(content)
    return f"/proc/self/fd/{file}"


def _find_entry(documents: list[_Document], section: str, name: Any) -> Entry | None:
    return next(
        (entry for each in documents for entry in each.entries(section) if name and entry.get("name") == name), None
    )


def _certificate_end(user: Entry) -> datetime | None:
    try:
        if user.get("client-certificate-data"):
            pem = base64.b64decode(user["client-certificate-data"])
        elif user.get("client-certificate"):
            pem = Path(user["client-certificate"]).read_bytes()
        else:
            return None
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except (OSError, ValueError):
        return None


def _token_end(token: str) -> datetime | None:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(int(claims["exp"]), UTC)
    except (IndexError, KeyError, ValueError, TypeError):
        return None
