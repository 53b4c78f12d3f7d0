"""Canaries are random, so that no pattern can know them; where each one stands is what the redactor recognises."""

from __future__ import annotations

import base64
import json
import os
import secrets
import time
from pathlib import Path

import pytest
import yaml

from testbed import folders
from testbed.conformance import catalogue
from testbed.redaction import MARK, Redactor, is_secret_name

_SIZE = 10_000_000
_RECOGNISED = {
    "variable": "GPU=0\nDB_PASSWORD={}\nHOME=/root",
    "variable with blanks": "VENDOR_LICENSE_KEY=first {} last",
    "variable in the middle of a line": "started with API_TOKEN={} on node-1",
    "exported variable": "export AWS_SECRET_ACCESS_KEY={}",
    "indented variable": "command failed (exit 1): env\n    REGISTRY_CREDENTIAL={}\n",
    "YAML": "spec:\n  clientSecret: {}\n",
    "YAML block": "spec:\n  passphrase: |\n    first\n    {}\n  next: 1\n",
    "YAML list": "- token: '{}'",
    "JSON": '{{"level": "info", "accessToken": "{}", "code": 1}}',
    "JSON in JSON": '{{"message": "{{\\"password\\": \\"{}\\"}}"}}',
    "environment in YAML": "env:\n- name: DB_PASSWORD\n  value: {}\n",
    "environment in JSON": '{{"env":[{{"name":"DB_PASSWORD","value":"{}"}}]}}',
    "Go map": "config: map[password:{} user:x]",
    "option": "driver --auth-token {} --verbose",
    "option with an equals sign": "driver --auth-token={} --verbose",
    "URL": "cannot pull https://robot:{}@registry.example/v2",
    "token in a URL": "git clone https://{}@git.example/x",
    "query of a URL": "GET https://example/x?user=a&access_token={}&b=c",
    "Go": "token := {}",
    "header": "> Authorization: Basic {}\n> Accept: text/plain",
    "Go header": "Authorization:[Digest {}]",
    "bearer": "sent Bearer {} to the server",
    "cookie": "Set-Cookie: session={}; Path=/",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    "PEM in JSON": '"ca": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n"',
    "truncated PEM": "-----BEGIN PRIVATE KEY-----\n{}\n",
    "end of a PEM block": "MIIEpAIBAAKCAQEA{}\n-----END PRIVATE KEY-----",
    "kubeconfig token": "users:\n- name: me\n  user:\n    token: {}\n",
    "kubeconfig key": "    client-key-data: {}\n",
    "JWT": "token review of eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIx{}.c2lnbmF0dXJl failed",
}
_READABLE = (
    "taints:\n- effect: NoSchedule\n  key: node.kubernetes.io/unreachable\n",
    'I0101 10:00:00.000000 1 controller.go:12] "syncing" key="default/claim-1"',
    "E0101 token_cleaner.go:118] nothing to do",
    "volumes:\n- secret:\n    secretName: ca\n",
    "GPU_DEVICE_0_UUID=GPU-4c0f-11\n",
    "image: registry.example/driver@sha256:" + "0f" * 32,
    "the driver added another device to the container than was allocated",
    "monkey=banana keyboard: us",
    "assert token == other and secret != 2",
    "KeyError: 'nothing'",
    "the key and the secret of a good token is the credential",
    "topologyKey: kubernetes.io/hostname",
)


@pytest.fixture
def canary() -> str:
    return secrets.token_hex(12)


@pytest.mark.parametrize("text", _RECOGNISED.values(), ids=_RECOGNISED.keys())
def test_a_credential_is_removed(text: str, canary: str) -> None:
    redactor = Redactor()
    clean = redactor.redact(text.format(canary))
    assert canary not in clean
    assert MARK in clean
    assert redactor.redact(clean) == clean


@pytest.mark.parametrize("text", _READABLE)
def test_other_text_stays(text: str) -> None:
    assert Redactor().redact(text) == text


def test_what_follows_a_credential_stays(canary: str) -> None:
    text = f'{{"accessToken": "{canary}", "device": "gpu-1"}}\nPASSWORD={canary}\nGPU=gpu-2\n'
    assert Redactor().redact(text) == f'{{"accessToken": "{MARK}", "device": "gpu-1"}}\nPASSWORD={MARK}\nGPU=gpu-2\n'


def test_the_requirements_stay() -> None:
    redactor = Redactor()
    sentences = [each.requirement.sentence for each in catalogue.read([folders.data("suites")]).entries]
    assert [redactor.redact(each) for each in sentences] == sentences


def test_a_registered_value_is_removed_also_when_it_is_encoded(canary: str) -> None:
    redactor, value = Redactor(), f'{canary}"line'
    redactor.register_secret({"data": {"harmless": base64.b64encode(value.encode()).decode()}})
    for text in (value, json.dumps(value), base64.b64encode(value.encode()).decode(), f"LICENSE={value}"):
        assert canary not in redactor.redact(text)
        assert base64.b64encode(value.encode()).decode() not in redactor.redact(text)


def test_a_short_registered_value_stays() -> None:
    redactor = Redactor()
    redactor.register("true", "", "on")
    assert redactor.redact("the driver is on: true") == "the driver is on: true"


def test_variables_of_this_process_are_registered_unless_they_are_paths(canary: str) -> None:
    redactor = Redactor()
    redactor.register_environment({"GITHUB_TOKEN": canary, "SSH_KEY": "/home/me/key", "LANG": "C.UTF-8-but-long"})
    assert redactor.redact(f"{canary} /home/me/key C.UTF-8-but-long") == f"{MARK} /home/me/key C.UTF-8-but-long"


def test_the_credentials_of_a_kubeconfig_are_registered(canary: str) -> None:
    redactor = Redactor()
    redactor.register_credentials({"token": canary, "username": "an-administrator"})
    redactor.register_credentials(None)
    assert redactor.redact(f"an-administrator sent {canary}") == f"an-administrator sent {MARK}"


def test_the_devices_that_the_probe_shows_stay_readable(canary: str) -> None:
    redactor = Redactor()
    redactor.keep_readable([r"^GPU_KEY_\w+=(?P<id>\S+)$"])
    assert redactor.redact(f"GPU_KEY_0=gpu-7\nDB_PASSWORD={canary}\n") == f"GPU_KEY_0=gpu-7\nDB_PASSWORD={MARK}\n"


def test_a_probe_for_any_variable_keeps_no_secret_readable(canary: str) -> None:
    redactor = Redactor()
    redactor.keep_readable([r"^\w+=(?P<id>\S+)$", r"(?P<id>.*)"])
    assert canary not in redactor.redact(f"DB_PASSWORD={canary}\n")


def test_objects_are_redacted_by_their_keys(canary: str) -> None:
    pod = {
        "metadata": {
            "annotations": {"last-applied": json.dumps({"password": canary}), "vendor.example/api-key": canary}
        },
        "spec": {
            "tolerations": [{"key": "node.kubernetes.io/unreachable"}],
            "automountServiceAccountToken": True,
            "containers": [
                {
                    "command": ["driver", "--token", canary, "--password=" + canary, "--verbose"],
                    "env": [{"name": "DB_PASSWORD", "value": canary}, {"name": "DEVICE", "value": "gpu-1"}],
                }
            ],
        },
        "parameters": {"credentials": {"user": canary, "pins": [canary]}, "interval": "Short"},
    }
    clean = Redactor().redact_data(pod)
    text = yaml.safe_dump(clean, width=20)
    assert canary not in text
    assert clean["spec"]["tolerations"] == [{"key": "node.kubernetes.io/unreachable"}]
    assert clean["spec"]["automountServiceAccountToken"] is True
    assert clean["spec"]["containers"][0]["command"][-1] == "--verbose"
    assert clean["spec"]["containers"][0]["env"][1] == {"name": "DEVICE", "value": "gpu-1"}
    assert clean["parameters"]["interval"] == "Short"


@pytest.mark.parametrize("name", ["TOKEN", "db_password", "apiKey", "KEY", "client-key-data", "authToken", "MYKEY"])
def test_a_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["key", "secretName", "topologyKey", "author", "keyboard", "monkey", "DEVICE"])
def test_a_harmless_name(name: str) -> None:
    assert not is_secret_name(name)


_HOSTILE = (
    *("key", "key=", "token=a ", "token=a\n", "a.b.", "eyJ", "eyJaaaaaaaa.", "-----BEGIN X-----", "-----END X-----"),
    *('token="', 'token=\\"', "\\", "://a:", " ", "\n", "name: ", "A" * 70 + "\n", "authorization:", "token: |\n"),
    *("-", "--token ", "token: \n ", "bearer ", "-----BEGIN X----- ," + "a" * 99, "İtoken=a", "name: x\nvalue: "),
)


@pytest.mark.parametrize("unit", _HOSTILE)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    text = (unit * (_SIZE // len(unit) + 1))[:_SIZE]
    began = time.process_time()
    Redactor().redact(text)
    assert time.process_time() - began < 2


def test_a_text_with_too_many_names_loses_whole_lines(canary: str) -> None:
    clean = Redactor().redact("token=a\n" * 200_000 + f"x password={canary} y\nlast\n")
    assert canary not in clean
    assert clean.endswith("\nlast\n")


@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_a_credential_at_the_border_of_two_chunks_of_a_file_is_removed(tmp_path: Path, canary: str, shift: int) -> None:
    pem = f"-----BEGIN PRIVATE KEY-----\n{canary}\n-----END PRIVATE KEY-----\n"
    file = tmp_path / "log"
    file.write_bytes(b"x" * ((1 << 20) - shift) + b"\n" + pem.encode() + b"\xff\xfe\r\nend\n")
    Redactor().redact_file(file)
    content = file.read_bytes()
    assert canary.encode() not in content
    assert content.endswith(b"\xff\xfe\r\nend\n")
    assert [each.name for each in tmp_path.iterdir()] == ["log"]


def test_links_and_pipes_in_a_folder_are_removed_and_not_followed(tmp_path: Path, canary: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (outside / "deep").mkdir(parents=True)
    (folder / "sub").mkdir(parents=True)
    (outside / "deep/file").write_text(f"PASSWORD={canary}\n")
    (folder / "sub/link.log").symlink_to(outside / "deep/file")
    (folder / "other").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    (folder / "sub/log").write_text(f"PASSWORD={canary}\n")
    Redactor().redact_folder(folder)
    assert [str(each.relative_to(folder)) for each in folder.rglob("*")] == ["sub", "sub/log"]
    assert (folder / "sub/log").read_text() == f"PASSWORD={MARK}\n"
    assert (outside / "deep/file").read_text() == f"PASSWORD={canary}\n"


@pytest.mark.parametrize("name", ["my-key.yaml", "gpu-auth.yml", "token.py", "secret.go"])
def test_the_line_number_after_a_file_name_stays(name: str) -> None:
    text = f"error: /drivers/{name}:2: kind: is 'DriverFlie', but must be 'DriverFile'"
    assert Redactor().redact(text) == text


@pytest.mark.parametrize("name", ["my-key", "passwd", "/drivers/gpu-key", "\n  gpu-key"])
@pytest.mark.parametrize(
    "what", ["spec.devices.classes[0]: is empty", "not valid YAML: x", "2 files do not exist: a, b"]
)
def test_the_line_number_after_a_file_name_without_suffix_stays(name: str, what: str) -> None:
    text = f"error: {name}:27: {what}"
    assert Redactor().redact(text) == text


@pytest.mark.parametrize(
    "text", ["password: 1234", "password: 1234: a: b", "password:1234", "password:123456: a: b", "passwd:1234 a: b"]
)
def test_a_number_that_is_no_line_is_removed(text: str) -> None:
    assert "1234" not in Redactor().redact(text)


def test_a_driver_cannot_send_commands_to_the_terminal_of_a_reader() -> None:
    message = "failed\x1b[2J\x1b]0;title\x07\rconformant\u202eflipped\x9b1A\nnext\tline\r\n"
    shown = r"failed\x1b[2J\x1b]0;title\x07\rconformant\u202eflipped\x9b1A" + "\nnext\tline\r\n"
    assert Redactor().redact(message) == shown
