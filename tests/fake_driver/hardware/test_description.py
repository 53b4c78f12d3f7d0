from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.errors import ConfigurationError
from fake_driver.hardware import description
from fake_driver.hardware.groups import MOST_DEVICES
from fake_driver.hardware.model import Version

GROUP = {"kind": "gpu", "count": 2}


def hardware(*groups: object, **more: object) -> str:
    document = {"apiVersion": "dra-testbed/v1alpha1", "kind": "Hardware", "metadata": {"name": "x"}}
    return yaml.safe_dump({**document, "spec": {"devices": list(groups)}, **more})


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        description.parse(text, "my.yaml")
    return str(refused.value)


def test_every_type_of_attribute_is_read() -> None:
    attributes = {
        "a": "text",
        "b": 7,
        "c": True,
        "d": {"version": "1.2.3-rc.1+x"},
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
    }
    group = description.parse(hardware({**GROUP, "attributes": attributes}), "x").groups[0]
    assert group.attributes == {**attributes, "d": Version("1.2.3-rc.1+x")}
    assert [type(group.attributes[key]) for key in "abc"] == [str, int, bool]


def test_capacity_is_a_quantity_and_a_plain_number_is_one() -> None:
    group = description.parse(hardware({**GROUP, "capacity": {"memory": "80Gi", "engines": 7}}), "x").groups[0]
    assert group.capacity == {"memory": "80Gi", "engines": "7"}


def test_the_built_in_hardware_is_read() -> None:
    built_in = Path(__file__).parents[3] / "manifests/hardware/gpus.yaml"
    assert description.read(built_in).groups[0].count == 8


def test_an_unknown_key_is_named_with_its_path_and_what_it_may_have_meant() -> None:
    assert "spec.devices[1].capacties is unknown; did you mean capacity?" in refusal(
        hardware(GROUP, {**GROUP, "capacties": {}})
    )


def test_all_problems_are_told_at_once() -> None:
    text = hardware(
        {"kind": "GPU", "count": 0, "attributes": {"x-y": 1, "f": 1.5}, "capacity": {"m": "much"}}, kind="Hard"
    )
    told = refusal(text)
    for part in (
        "kind is 'Hard'",
        "kind is 'GPU'",
        "count must be 1 to",
        "'x-y'",
        "attributes.f must be",
        "capacity.m is 'much'",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("group", "part"),
    [
        ({"count": 1}, "devices[0].kind is missing"),
        ({"kind": "gpu"}, "devices[0].count is missing"),
        ({"kind": "gpu", "count": True}, "count is true or false, but must be a whole number"),
        ({"kind": "gpu", "count": "2"}, "count is a text, but must be a whole number"),
        ({"kind": "gpu", "count": 10_001}, "count must be 1 to 10000"),
        ("gpu", "devices[0] is a text, but must be a mapping"),
        ({**GROUP, "attributes": {"v": {"version": "1.2"}}}, "attributes.v must be {version: x.y.z}"),
        ({**GROUP, "attributes": {"n": 2**63}}, "attributes.n does not fit into 64 bits"),
        ({**GROUP, "attributes": {"t": "x" * 65}}, "attributes.t must be"),
        ({**GROUP, "attributes": {"t": "two\nlines"}}, "attributes.t must be"),
        ({**GROUP, "attributes": {"t": ""}}, "attributes.t must be"),
        ({**GROUP, "attributes": {"UPPER.domain/x": 1}}, "has the name 'UPPER.domain/x'"),
        ({**GROUP, "attributes": {f"a{i}": i for i in range(31)}}, "33 together"),
        ({**GROUP, "perDevice": [{"numa": 0}]}, "perDevice has 1 rows for 2 devices"),
        ({**GROUP, "perDevice": [{"numa": 0}, "x"]}, "perDevice[1] must be a mapping"),
    ],
)
def test_a_wrong_group_is_refused_with_the_reason(group: object, part: str) -> None:
    assert part in refusal(hardware(group))


def test_a_node_with_too_many_devices_is_refused() -> None:
    assert "20000 devices" in refusal(hardware({"kind": "gpu", "count": 10_000}, {"kind": "nic", "count": 10_000}))


def test_a_key_that_is_there_twice_is_refused_with_its_line() -> None:
    assert "the key 'kind' is there twice" in refusal("kind: Hardware\nkind: Hardware\n")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.yaml cannot be read"):
        description.read(tmp_path / "missing.yaml")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        description.parse(text, "x")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["kind", "count", "attributes", "capacity", "perDevice", "other"]), anything))
def test_any_group_is_read_or_refused(group: dict[str, object]) -> None:
    try:
        read = description.parse(hardware(group), "x")
    except ConfigurationError:
        return
    assert 1 <= read.groups[0].count <= MOST_DEVICES
