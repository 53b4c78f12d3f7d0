from __future__ import annotations

import base64
import tempfile
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from testbed.errors import UsageError
from testbed.kube.client import Kube
from testbed.kube.kubeconfig import load_access


def _file(path: Path, **sections: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **sections}))
    return path


def _context(name: str, cluster: str = "c", user: str = "u") -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster, "user": user}}


CLUSTER = {"name": "c", "cluster": {"server": "https://one:6443", "certificate-authority": "ca.crt"}}
USER = {"name": "u", "user": {"client-certificate": "u.crt", "client-key": "/abs/u.key"}}


def test_one_context_is_extracted_with_absolute_paths(tmp_path: Path) -> None:
    other = {"name": "d", "cluster": {"server": "https://other"}}
    file = _file(
        tmp_path / "kube/config",
        contexts=[_context("one"), _context("two", cluster="d")],
        clusters=[CLUSTER, other],
        users=[USER, {"name": "v", "user": {"token": "secret"}}],
        **{"current-context": "two"},
    )
    found = load_access(file, "one")
    found.write(tmp_path / "copy")
    content = yaml.safe_load((tmp_path / "copy").read_text())
    assert (content["current-context"], len(content["contexts"]), len(content["users"])) == ("one", 1, 1)
    assert content["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "kube/ca.crt")
    assert content["users"][0]["user"] == {
        "client-certificate": str(tmp_path / "kube/u.crt"),
        "client-key": "/abs/u.key",
    }
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    assert str(found) == f"https://one:6443 (context one of {file})"
    assert load_access(file, None).server == "https://other"


@pytest.mark.parametrize(("command", "kept"), [("./bin/login", "{folder}/bin/login"), ("aws", "aws"), ("/x/y", "/x/y")])
def test_a_credential_plugin_is_kept_with_its_path(tmp_path: Path, command: str, kept: str) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command, "args": ["token"]}
    file = _file(
        tmp_path / "config",
        contexts=[_context("one")],
        clusters=[CLUSTER],
        users=[{"name": "u", "user": {"exec": plugin}}],
        **{"current-context": "one"},
    )
    found = load_access(file, None).user["exec"]
    assert found == {**plugin, "command": kept.format(folder=tmp_path)}


def test_several_files_are_merged_as_by_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _file(tmp_path / "a", contexts=[_context("one")], users=[USER])
    second = _file(tmp_path / "b", contexts=[_context("two")], clusters=[CLUSTER], **{"current-context": "one"})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'gone'}:{second}")
    assert load_access(None, None).server == "https://one:6443"


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({}, "has no current context"),
        ({"current-context": "x"}, "has no context x"),
        ({"current-context": "one", "contexts": [_context("one")]}, "refers to cluster c, which has no server"),
        (
            {"current-context": "one", "contexts": [_context("one")], "clusters": [CLUSTER]},
            "refers to user u, which does not exist",
        ),
        ({"current-context": "one", "contexts": ["nonsense"]}, "has no context one"),
    ],
)
def test_an_incomplete_kubeconfig_is_a_usage_error(tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_access(_file(tmp_path / "config", **sections), None)


def _certificate(end: datetime) -> bytes:
    return _pair(end).partition(b"-----BEGIN PRIVATE")[0]


def _pair(end: datetime) -> bytes:
    """Return a certificate and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(end - timedelta(days=2)).not_valid_after(end)
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return made.sign(key, hashes.SHA256()).public_bytes(pem) + key.private_bytes(pem, *plain)


@pytest.mark.parametrize(("days", "message"), [(-1, "its client certificate expired on "), (1, "")])
def test_an_expired_certificate_is_detected(tmp_path: Path, days: int, message: str) -> None:
    (tmp_path / "u.crt").write_bytes(_certificate(datetime.now(UTC) + timedelta(days=days)))
    file = _file(
        tmp_path / "config",
        contexts=[_context("one")],
        clusters=[CLUSTER],
        users=[USER],
        **{"current-context": "one"},
    )
    assert load_access(file, None).expired().startswith(message)
    assert bool(load_access(file, None).expired()) is bool(message)


@pytest.mark.parametrize(
    "text",
    [
        "users:\n- user: {token: SECRET: no}\n",
        "token: *SECRET\n",
        "token: !SECRET x\n",
        "%TAG ! x\n--- !SECRET!a\n",
        'token: "\\SECRET"\n',
        "token: SECRET\n\tx: y\n",
        "token: SECRET\x00\n",
        "token: SECRET\udcff\n",
    ],
)
def test_errors_do_not_quote_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match="cannot be read: ") as raised:
        load_access(tmp_path / "config", None)
    text = "".join(traceback.format_exception(raised.value))
    assert "SECRET" not in text


def test_errors_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("kind: Config\nusers: [\n")
    with pytest.raises(UsageError, match="line 3: expected the node content, but found '<stream end>'"):
        load_access(tmp_path / "config", None)


def _with_data(folder: Path, **data: str) -> Path:
    user, cluster = {"name": "u", "user": data}, {"name": "c", "cluster": {"server": "https://one:6443"}}
    sections = {"contexts": [_context("one")], "clusters": [cluster], "users": [user], "current-context": "one"}
    return _file(folder / "config", **sections)


def test_keys_are_passed_to_the_transport_in_memory(tmp_path: Path) -> None:
    data = {name: base64.b64encode(name.encode()).decode() for name in ("client-certificate", "client-key")}
    found = load_access(_with_data(tmp_path, **{f"{name}-data": text for name, text in data.items()}), None)
    user = found.loadable()["users"][0]["user"]
    assert {name: Path(path).read_text() for name, path in user.items()} == {name: name for name in data}
    assert all("memfd" in str(Path(path).readlink()) for path in user.values())
    assert "client-key-data" in found.user, "what is written is what was found"


def test_a_client_writes_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    pem = base64.b64encode(_pair(datetime.now(UTC) + timedelta(days=1))).decode()
    Kube(_with_data(tmp_path, **{"client-certificate-data": pem, "client-key-data": pem}))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_invalid_base64_is_a_usage_error(tmp_path: Path) -> None:
    found = load_access(_with_data(tmp_path, **{"client-key-data": "&"}), None)
    with pytest.raises(UsageError, match="client-key-data of user u is not base64"):
        found.loadable()
