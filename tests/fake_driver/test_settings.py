from pathlib import Path

import pytest

from fake_driver.errors import ConfigurationError
from fake_driver.settings import parse

POD = {
    "NODE_NAME": "worker",
    "POD_UID": "11111111-1111-4111-8111-111111111111",
    "FAKE_DRIVER_HARDWARE": "/etc/hardware.yaml",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
}


def test_in_a_pod_the_environment_is_enough() -> None:
    found = parse([], POD)
    assert (found.node, found.api_server) == ("worker", "https://10.96.0.1:443")
    assert found.data == Path("/var/lib/kubelet/plugins/gpu.dra-testbed.example")


def test_a_flag_takes_precedence_over_its_variable() -> None:
    assert parse(["--node", "other", "--api-server", "http://x"], POD).node == "other"


def test_an_ipv6_address_of_the_api_server_is_put_into_brackets() -> None:
    assert parse([], {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}).api_server == "https://[fd00::1]:443"


def test_all_invalid_settings_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse([], {"FAKE_DRIVER_NAME": "GPU", "POD_UID": "../x"})
    for part in ("$NODE_NAME", "$FAKE_DRIVER_HARDWARE", "'GPU'", "'../x'", "must be a URL outside of a pod"):
        assert part in str(refused.value)


def test_kinds_are_separated_by_commas() -> None:
    assert parse([], {**POD, "FAKE_DRIVER_KINDS": "gpu, nic"}).kind_names == ("gpu", "nic")
    assert parse([], POD).kind_names == ()


def test_mutants_are_separated_by_commas() -> None:
    assert parse(["--faults", " no-env, slices-missing ,"], POD).mutant_names == ("no-env", "slices-missing")
    assert parse([], POD).mutant_names == ()


@pytest.mark.parametrize(
    ("text", "address"), [("", None), (":8080", ("", 8080)), ("127.0.0.1:1", ("127.0.0.1", 1)), ("[::1]:1", ("::1", 1))]
)
def test_the_address_of_the_probes(text: str, address: tuple[str, int] | None) -> None:
    assert parse(["--probes", text], POD).probe_address == address


@pytest.mark.parametrize("text", ["8080x", ":", ":99999", ":-1", ":٣"])
def test_an_invalid_probe_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--probes is"):
        _ = parse(["--probes", text], POD).probe_address


def test_settings_contain_the_path_of_the_token_file_but_not_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2")
    shown = parse(["--token-file", str(tmp_path / "token")], POD).non_empty()
    assert shown["token_file"] == f"{tmp_path}/token"
    assert "hunter2" not in str(shown)


@pytest.mark.parametrize(("flag", "value"), [("--log", "xml"), ("--log-level", "loud")])
def test_an_unknown_log_format_or_level_is_refused(flag: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{flag} .* must be one of .*, but is '{value}'"):
        parse([flag, value], POD)
