"""Finds a kubeconfig as kubectl does and takes one context out of it, so that the copy works from any folder, and for no other cluster.

Files of a kubeconfig are merged as kubectl merges them: the first that says something wins.
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

_FILES = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
_DATA = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key")}
Entry = dict[str, Any]


@dataclass(frozen=True)
class Access:
    """One cluster as one user: a kubeconfig with this context alone, and words about it for messages."""

    content: Entry
    context: str
    source: str

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self.content["clusters"][0]["cluster"].get("server", ""))

    @property
    def user(self) -> Entry:
        """The user's credentials."""
        return dict(self.content["users"][0]["user"]) if self.content["users"] else {}

    def loadable(self) -> Entry:
        """The content for the transport, which takes keys from files only: files in memory, which no killed process leaves behind."""
        clusters = [_without_data(each, "cluster", self.source) for each in self.content["clusters"]]
        users = [_without_data(each, "user", self.source) for each in self.content["users"]]
        return {**self.content, "clusters": clusters, "users": users}

    def write(self, file: Path) -> None:
        """Write it for its owner's eyes alone."""
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            yaml.safe_dump(self.content, out, sort_keys=False)

    def expired(self) -> str:
        """Which of its credentials has run out, and when; '' when none is known to have."""
        now = datetime.now(UTC)
        ends = {"client certificate": _certificate_end(self.user), "token": _token_end(str(self.user.get("token", "")))}
        old = [f"its {what} expired on {end:%Y-%m-%d %H:%M} UTC" for what, end in ends.items() if end and end < now]
        return "; ".join(old)

    def __str__(self) -> str:
        return f"{self.server} (context {self.context} of {self.source})"


def load_access(file: Path | None, context: str | None) -> Access:
    """The cluster that the context means: the current one, if none is named."""
    files = [file] if file else _default_files()
    documents = [_Document(path, _read(path)) for path in files]
    source = ":".join(map(str, files))
    wanted = context or next((name for each in documents if (name := each.content.get("current-context"))), "")
    known = [str(entry.get("name")) for each in documents for entry in each.entries("contexts")]
    if not wanted:
        hint = f"--context NAME; known: {', '.join(known)}" if known else "is it the right file?"
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
        """The named entries of a section, with the files in them seen from anywhere."""
        for entry in self.content.get(section) or ():
            if isinstance(entry, dict):
                yield {key: self._absolute(key, value) for key, value in entry.items()}

    def _absolute(self, key: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        moved: Entry = {name: str(self._seen(value[name])) for name in _FILES.get(key, ()) if value.get(name)}
        program = value.get("exec", {}).get("command", "") if isinstance(value.get("exec"), dict) else ""
        if "/" in program:
            moved["exec"] = {**value["exec"], "command": str(self._seen(program))}
        return {**value, **moved}

    def _seen(self, path: str) -> Path:
        return self.path.absolute().parent / Path(path).expanduser()


def _minified(documents: list[_Document], name: str, chosen: Entry, source: str) -> Access:
    said = chosen.get("context") or {}
    cluster = _find_entry(documents, "clusters", said.get("cluster"))
    user = _find_entry(documents, "users", said.get("user"))
    if cluster is None or not (cluster.get("cluster") or {}).get("server"):
        raise UsageError(
            f"kubeconfig {source}: context {name} means cluster {said.get('cluster')}, of which it does not know a server"
        )
    if said.get("user") and user is None:
        raise UsageError(f"kubeconfig {source}: context {name} means user {said['user']}, whom it does not know")
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
    said = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    candidates = said or [Path.home() / ".kube/config"]
    files = [path for path in candidates if path.is_file()]
    if not files:
        looked = ", ".join(map(str, candidates))
        raise UsageError(f"there is no kubeconfig: looked at {looked}", hint="say which: --kubeconfig FILE")
    return files


def _read(path: Path) -> Entry:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as bad:
        raise UsageError(f"kubeconfig {path} cannot be read: {bad.strerror}") from bad
    except (UnicodeDecodeError, yaml.YAMLError) as bad:
        # Not chained: the parser's own words quote the file, and with it a secret.
        raise UsageError(f"kubeconfig {path} cannot be read: {_reason(bad)}") from None
    if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
        raise UsageError(f"{path} is not a kubeconfig", hint="such a file has apiVersion: v1 and kind: Config")
    return content


def _reason(bad: Exception) -> str:
    """What is wrong, and on which line, without a word of the file."""
    if not isinstance(bad, yaml.MarkedYAMLError):
        return "it is not text in UTF-8" if isinstance(bad, UnicodeDecodeError) else "it is not YAML"
    line = f"line {bad.problem_mark.line + 1}: " if bad.problem_mark else ""
    return line + re.sub(r"(['\"])(?!<)..+\1", "something", bad.problem or "it is not YAML")


def _without_data(entry: Entry, key: str, source: str) -> Entry:
    said = dict(entry.get(key) or {})
    for name in _DATA[key]:
        data = said.pop(f"{name}-data", None)
        try:
            said |= {name: _in_memory(base64.b64decode("".join(data.split()), validate=True))} if data else {}
        except (AttributeError, ValueError) as bad:
            raise UsageError(f"kubeconfig {source}: {name}-data of {key} {entry['name']} is not base64") from bad
    return {**entry, key: said}


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
