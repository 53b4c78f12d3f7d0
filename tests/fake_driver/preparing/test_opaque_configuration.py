from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.errors import ClaimRefused
from fake_driver.preparing.claims import AllocatedDevice, ClaimRef
from fake_driver.preparing.opaque_configuration import API_VERSION, apply_configs, by_precedence, read_configs

DRIVER, REF = "gpu.example", ClaimRef("uid-1", "default", "one")
Object = dict[str, Any]


def entry(kind: str = "GpuConfig", source: str = "FromClaim", requests: tuple[str, ...] = (), **fields: Any) -> Object:
    parameters = {"apiVersion": API_VERSION, "kind": kind, **fields}
    return {"source": source, "requests": list(requests), "opaque": {"driver": DRIVER, "parameters": parameters}}


def claim(*entries: Any) -> Object:
    return {"status": {"allocation": {"devices": {"config": list(entries)}}}}


def configured(*entries: Object, request: str = "gpu", is_network: bool = False) -> AllocatedDevice:
    """Return a device with these entries applied."""
    device = AllocatedDevice(request, "worker", "gpu-0")
    return apply_configs(device, by_precedence(read_configs(claim(*entries), REF, DRIVER)), is_network=is_network)


def refusal(*entries: Any) -> str:
    with pytest.raises(ClaimRefused) as refused:
        read_configs(claim(*entries), REF, DRIVER)
    return str(refused.value)


def test_the_prefix_of_a_variable_tells_the_user_from_the_admin() -> None:
    found = configured(entry(source="FromClass", env={"a": "1"}), entry(env={"a": "b"}))
    assert found.variables == {"admin_a": "1", "user_a": "b"}


@pytest.mark.parametrize(
    ("sharing", "facts"),
    [
        ({"strategy": "TimeSlicing"}, {"SHARING_STRATEGY": "TimeSlicing", "SHARING_INTERVAL": "Default"}),
        (
            {"strategy": "TimeSlicing", "interval": "Long"},
            {"SHARING_STRATEGY": "TimeSlicing", "SHARING_INTERVAL": "Long"},
        ),
        (
            {"strategy": "SpacePartitioning", "partitions": 4},
            {"SHARING_STRATEGY": "SpacePartitioning", "SHARING_PARTITIONS": "4"},
        ),
    ],
)
def test_a_gpu_can_be_shared_in_two_ways(sharing: Object, facts: Object) -> None:
    assert configured(entry(sharing=sharing)).facts == facts


def test_a_nic_has_an_interface_and_addresses() -> None:
    fields: Object = {"interfaceName": "net1", "mtu": 9000, "vlan": 7, "addresses": ["192.0.2.7/24", "2001:DB8::7/64"]}
    found = configured(entry("NicConfig", **fields), is_network=True)
    assert found.facts == {"INTERFACE": "net1", "MTU": "9000", "VLAN": "7", "IPS": "192.0.2.7/24,2001:db8::7/64"}


def test_the_claim_wins_over_the_class_wherever_it_is_listed_and_the_later_over_the_earlier() -> None:
    entries = [
        entry(sharing={"strategy": "SpacePartitioning", "partitions": 2}, env={"a": "early", "c": "kept"}),
        entry(source="FromClass", sharing={"strategy": "TimeSlicing", "interval": "Short"}),
        entry(env={"a": "late"}),
    ]
    found = configured(*entries)
    assert found.facts == {"SHARING_STRATEGY": "SpacePartitioning", "SHARING_PARTITIONS": "2"}
    assert found.variables == {"user_a": "late", "user_c": "kept"}


def test_a_repeated_entry_does_no_harm() -> None:
    assert configured(entry(env={"a": "b"}), entry(env={"a": "b"})) == configured(entry(env={"a": "b"}))


@pytest.mark.parametrize(
    ("requests", "request_", "applies"),
    [
        ((), "gpu", True),
        (("gpu",), "gpu", True),
        (("gpu",), "gpu/big", True),
        (("gpu/big",), "gpu/big", True),
        (("gpu/big",), "gpu/small", False),
        (("other", "gpu"), "gpu", True),
        (("other",), "gpu", False),
        (("gpu/big",), "gpu", False),
    ],
)
def test_an_entry_applies_to_the_requests_and_subrequests_that_it_names(
    requests: tuple[str, ...], request_: str, applies: bool
) -> None:
    found = configured(entry(requests=requests, env={"a": "b"}), request=request_)
    assert found.variables == ({"user_a": "b"} if applies else {})


def test_configuration_for_other_drivers_is_ignored() -> None:
    foreign = {"source": "FromClaim", "opaque": {"driver": "other", "parameters": {"what": "ever"}}}
    assert read_configs(claim(foreign, {"source": "FromClass"}), REF, DRIVER) == []


@pytest.mark.parametrize(
    "bystander", [entry("NicConfig", mtu=9000), entry("NicConfig", "FromClass", ("gpu",), mtu=9000)]
)
def test_an_entry_for_all_requests_applies_to_devices_of_its_kind(bystander: Object) -> None:
    assert configured(bystander, entry(env={"a": "b"})).variables == {"user_a": "b"}


def test_an_entry_that_names_a_request_with_another_kind_of_device_is_refused() -> None:
    with pytest.raises(ClaimRefused, match="NicConfig names request gpu, but its device gpu-0 takes GpuConfig"):
        configured(entry("NicConfig", requests=("gpu",), mtu=9000))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "parameters.apiVersion is missing"),
        ({"apiVersion": "v2", "kind": "GpuConfig"}, f"parameters.apiVersion is 'v2', but must be '{API_VERSION}'"),
        ({"apiVersion": API_VERSION, "kind": "GpuConfg"}, "parameters.kind is 'GpuConfg'; did you mean GpuConfig"),
        ("text", "parameters is a string, but must be a mapping"),
        (None, "parameters is empty, but must be a mapping"),
    ],
)
def test_invalid_configuration_is_refused(parameters: Any, text: str) -> None:
    found = refusal({"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}})
    assert (
        f"claim default/one (uid-1) has invalid configuration: status.allocation.devices.config[0].opaque.{text}"
        in found
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"envs": {}}, "parameters.envs is unknown; did you mean env"),
        ({"env": []}, "parameters.env is a list, but must be a mapping"),
        ({"env": {"a": 1}}, "parameters.env.a must be a printable text"),
        ({"env": {"a": "x\ny"}}, "parameters.env.a must be a printable text"),
        ({"env": {"a=b": "x"}}, "parameters.env has the name 'a=b'"),
        ({"sharing": {}}, "parameters.sharing.strategy is missing"),
        ({"sharing": {"strategy": "Timeslicing"}}, "sharing.strategy is 'Timeslicing'; did you mean TimeSlicing"),
        (
            {"sharing": {"strategy": "TimeSlicing", "interval": "Forever"}},
            "sharing.interval is 'Forever'; known: Default, Long",
        ),
        ({"sharing": {"strategy": "TimeSlicing", "partitions": 2}}, "sharing.partitions is unknown"),
        (
            {"sharing": {"strategy": "SpacePartitioning", "partitions": 17}},
            "sharing.partitions is 17, but must be 1 to 16",
        ),
        (
            {"sharing": {"strategy": "SpacePartitioning", "partitions": True}},
            "sharing.partitions is a boolean, but must be an integer",
        ),
        ({"mtu": 9000}, "parameters.mtu is unknown"),
    ],
)
def test_a_wrong_field_of_a_gpu_is_named(fields: Object, text: str) -> None:
    assert text in refusal(entry(), entry(**fields))
    assert "config[1]" in refusal(entry(), entry(**fields))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"interfaceName": "much-too-long-for-linux"},
            "parameters.interfaceName is 'much-too-long-for-linux', but must be the name of",
        ),
        ({"interfaceName": "../x"}, "parameters.interfaceName"),
        ({"mtu": 67}, "parameters.mtu is 67, but must be 68 to 9216"),
        ({"vlan": "7"}, "parameters.vlan is a string, but must be an integer"),
        (
            {"addresses": ["192.0.2.7"]},
            "parameters.addresses[0] is '192.0.2.7', but must be an address with a prefix length",
        ),
        ({"addresses": ["192.0.2.7/24", "192.0.2.777/24"]}, "parameters.addresses[1] is"),
        ({"addresses": ["fe80::1%eth0/64"]}, "parameters.addresses[0] is"),
        ({"addresses": [7]}, "parameters.addresses[0] is 7"),
        ({"addresses": ["192.0.2.7/24"] * 17}, "parameters.addresses has 17 addresses"),
        ({"sharing": {}}, "parameters.sharing is unknown"),
    ],
)
def test_a_wrong_field_of_a_nic_is_named(fields: Object, text: str) -> None:
    assert text in refusal(entry("NicConfig", **fields))


def test_a_refusal_is_one_line_of_limited_length() -> None:
    wrong: Object = {f"wrong\n{number}{'x' * 500}": 1 for number in range(20)}
    found = refusal(entry(**wrong))
    assert "\n" not in found
    assert "and 15 more" in found
    assert len(found) < 2000


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields_ = st.dictionaries(
    st.sampled_from(["env", "sharing", "interfaceName", "mtu", "vlan", "addresses"]) | st.text(max_size=5),
    anything,
    max_size=4,
)


@given(st.sampled_from(["GpuConfig", "NicConfig"]), fields_)
def test_any_configuration_is_applied_or_refused(kind: str, fields: Object) -> None:
    parameters = {**fields, "apiVersion": API_VERSION, "kind": kind}
    try:
        (found,) = read_configs(claim({"opaque": {"driver": DRIVER, "parameters": parameters}}), REF, DRIVER)
    except ClaimRefused as refused:
        texts = [str(refused)]
    else:
        pairs = [*found.variables.items(), *(pair for group in found.groups.values() for pair in group.items())]
        texts = [text for pair in pairs for text in pair]
    assert all(text.isprintable() for text in texts)
