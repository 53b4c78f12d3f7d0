import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.devices.model import DeviceChange, RequestPolicy, Taint, Version
from fake_driver.errors import ConfigurationError
from fake_driver.hardware import hardware_file
from fake_driver.hardware.device_groups import MOST_DEVICES

GROUP = {"kind": "gpu", "count": 2}


def hardware(*groups: object, **more: object) -> str:
    document = {"apiVersion": "dra-testbed/v1alpha1", "kind": "Hardware", "metadata": {"name": "x"}}
    return json.dumps({**document, "spec": {"devices": list(groups)}, **more})


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        hardware_file.parse(text, "my.yaml")
    return str(refused.value)


def test_every_type_of_attribute_is_read() -> None:
    attributes = {
        "a": "text",
        "b": 7,
        "c": True,
        "d": {"version": "1.2.3-rc.1+x"},
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
    }
    group = hardware_file.parse(hardware({**GROUP, "attributes": attributes}), "x").groups[0]
    assert group.attributes == {**attributes, "d": Version("1.2.3-rc.1+x")}
    assert [type(group.attributes[key]) for key in "abc"] == [str, int, bool]


def test_capacity_is_a_quantity_or_an_integer() -> None:
    group = hardware_file.parse(hardware({**GROUP, "capacity": {"memory": "80Gi", "engines": 7}}), "x").groups[0]
    assert group.capacity == {"memory": "80Gi", "engines": "7"}


def test_the_built_in_hardware_is_read() -> None:
    built_in = Path(__file__).parents[3] / "manifests/hardware/gpus.yaml"
    assert hardware_file.read(built_in).groups[0].count == 8


def test_an_unknown_key_is_reported_with_its_path_and_a_suggestion() -> None:
    assert "spec.devices[1].capacties is unknown; did you mean capacity?" in refusal(
        hardware(GROUP, {**GROUP, "capacties": {}})
    )


def test_a_misspelt_kind_is_reported_with_a_suggestion_and_another_kind_without() -> None:
    assert "kind is 'Hardwar', but must be 'Hardware'; did you mean Hardware?" in refusal(
        hardware(GROUP, kind="Hardwar")
    )
    assert refusal(hardware(GROUP, kind="Pod")).endswith("kind is 'Pod', but must be 'Hardware'")


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n"])
def test_an_empty_file_is_one_problem(text: str) -> None:
    assert refusal(text) == "my.yaml is empty"


def test_each_problem_is_reported_once_with_its_line() -> None:
    text = (
        "apiVersion: dra-testbed/v1alpha1\nkind: Hardware\nmetadata: {name: mine}\nspec:\n  devices:\n"
        "  - kind: gpu\n    count: four\n    capacity:\n      memory: lots\n    colour: red\n  - kind: port\n"
    )
    heading, *problems = refusal(text).splitlines()
    assert heading == "my.yaml is not a valid hardware file:"
    assert problems[:2] == [
        "  line 7: spec.devices[0].count is a string, but must be an integer",
        "  line 9: spec.devices[0].capacity.memory is 'lots', but must be a quantity such as 80Gi",
    ]
    assert problems[2].startswith("  line 10: spec.devices[0].colour is unknown")
    assert problems[3:] == ["  line 11: spec.devices[1].count is missing"]


def test_all_problems_are_reported_at_once() -> None:
    text = hardware(
        {"kind": "GPU", "count": 0, "attributes": {"x-y": 1, "f": 1.5}, "capacity": {"m": "much"}}, kind="Hard"
    )
    message = refusal(text)
    for part in (
        "kind is 'Hard'",
        "kind is 'GPU'",
        "count must be 1 to",
        "'x-y'",
        "attributes.f must be",
        "capacity.m is 'much'",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("group", "part"),
    [
        ({"count": 1}, "devices[0].kind is missing"),
        ({"kind": "gpu"}, "devices[0].count is missing"),
        ({"kind": "gpu", "count": True}, "count is a boolean, but must be an integer"),
        ({"kind": "gpu", "count": "2"}, "count is a string, but must be an integer"),
        ({"kind": "gpu", "count": 10_001}, "count must be 1 to 10000"),
        ("gpu", "devices[0] is a string, but must be a mapping"),
        ({**GROUP, "attributes": {"v": {"version": "1.2"}}}, "attributes.v must be {version: x.y.z}"),
        ({**GROUP, "attributes": {"n": 2**63}}, "attributes.n does not fit into 64 bits"),
        ({**GROUP, "attributes": {"t": "x" * 65}}, "attributes.t must be"),
        ({**GROUP, "attributes": {"t": "two\nlines"}}, "attributes.t must be"),
        ({**GROUP, "attributes": {"t": ""}}, "attributes.t must be"),
        ({**GROUP, "attributes": {"UPPER.domain/x": 1}}, "has the name 'UPPER.domain/x'"),
        ({**GROUP, "attributes": {f"a{i}": i for i in range(31)}}, "have 33 entries together"),
        ({**GROUP, "perDevice": [{"numa": 0}]}, "perDevice has 1 rows for 2 devices"),
        ({**GROUP, "perDevice": [{"numa": 0}, "x"]}, "perDevice[1] must be a mapping"),
    ],
)
def test_an_invalid_group_is_refused_with_the_reason(group: object, part: str) -> None:
    assert part in refusal(hardware(group))


HALF = {"name": "half", "count": 2, "takes": {"memory": "4Gi"}}
PARTS = {"counters": {"memory": "8Gi"}, "profiles": [HALF]}
SHARED = {**GROUP, "allowMultipleAllocations": True}


def profile(**more: object) -> dict[str, object]:
    return {**GROUP, "partitions": {**PARTS, "profiles": [{**HALF, **more}]}}


def edits(**fields: object) -> dict[str, object]:
    return {**GROUP, "containerEdits": fields}


BOUND = {**GROUP, "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}


def policy(value: object = "10", **fields: object) -> dict[str, object]:
    return {**SHARED, "capacity": {"m": {"value": value, "requestPolicy": fields}}}


@pytest.mark.parametrize(
    ("group", "part"),
    [
        ({**GROUP, "attributes": {"l": [1, True]}}, "attributes.l must be 1 to 48 values of one type"),
        ({**GROUP, "attributes": {"l": []}}, "attributes.l must be 1 to 48 values"),
        ({**GROUP, "spread": {"n": []}}, "spread.n must be a list of values"),
        ({**GROUP, "nodes": [1]}, "nodes must be a list of strings"),
        ({**GROUP, "taints": [{"key": "a b", "effect": "NoSchedule"}]}, "taints[0].key is 'a b'"),
        (
            {**GROUP, "taints": [{"key": "a", "effect": "PreferNoSchedule"}]},
            "must be one of NoSchedule, NoExecute, None",
        ),
        ({**GROUP, "taints": [{"key": "a", "value": "-", "effect": "None"}]}, "must be a label value"),
        ({**GROUP, "taints": [{"key": f"a{i}", "effect": "None"} for i in range(17)]}, "taints has 17 entries"),
        ({**GROUP, "bindingConditions": ["a"]}, "bindingConditions and bindingFailureConditions must be set together"),
        ({**GROUP, "bindingConditions": ["a"], "bindingFailureConditions": ["a"]}, "all different"),
        (
            {**GROUP, "bindingConditions": list("abcde"), "bindingFailureConditions": ["x"]},
            "may have at most 4 entries each",
        ),
        ({**GROUP, "attaching": {}}, "attaching needs bindingConditions"),
        ({**BOUND, "attaching": {"seconds": 601}}, "attaching.seconds must be 0 to 600"),
        ({**BOUND, "attaching": {"failures": -1}}, "attaching.failures must be 0 to 1000"),
        ({**BOUND, "attaching": {"minutes": 1}}, "attaching.minutes is unknown"),
        ({**GROUP, "network": {"interface": "net{i}"}}, "network.interface is 'net{i}'"),
        ({**GROUP, "network": {"interface": "net", "ranges": ["10.0.0.1/8"]}}, "which is not an address range"),
        (
            {**GROUP, "network": {"interface": "net", "ranges": ["10.0.0.0/30"]}},
            "too small for the devices of two nodes",
        ),
        ({**GROUP, "partitions": {"counters": {}, "profiles": []}}, "partitions.profiles must have at least one entry"),
        ({**GROUP, "partitions": {**PARTS, "counters": {"Memory": 1}}}, "has the name 'Memory'"),
        (profile(takes={"memory": "9Gi"}), "takes has 9Gi of memory, but the counter has 8Gi"),
        (profile(takes={"cores": 1}), "takes has 'cores', which is not in counters"),
        (profile(takes={}), "takes must name at least one counter"),
        (profile(name="Half"), "name is 'Half'"),
        (profile(count=0), "count must be 1 to"),
        (profile(capacity={"m": {"value": 1, "requestPolicy": {"default": 1}}}), "partitions are never shared"),
        ({**SHARED, "partitions": PARTS}, "partitions cannot be combined with allowMultipleAllocations"),
        ({**policy(default=1), "allowMultipleAllocations": False}, "which needs allowMultipleAllocations: true"),
        (policy(default=11), "allows more than the capacity of 10"),
        (policy(default=2, validValues=[1, 3]), "a default that is not one of the validValues"),
        (policy(default=1, validValues=[1, 3, 2]), "validValues that are not in ascending order"),
        (policy(default=1, validValues=[1], validRange={"min": 1}), "both validValues and validRange"),
        (policy(default=1, validRange={"min": 2}), "a default outside of validRange"),
        (policy(default=1, validRange={"max": 2}), "validRange.min is missing"),
        (policy(default=2, validRange={"min": 1, "step": 2}), "not min plus a multiple of step"),
        (policy(default=9, validRange={"min": 9, "step": 3}), "a min and step that together exceed the capacity of 10"),
        (policy(default=1, validRange={"min": 1, "step": 0}), "a step of 0"),
        (policy(validRange={"min": 1}), "requestPolicy.default is missing"),
        ({**GROUP, "containerEdits": {"env": ["A=b"]}}, "containerEdits.env is unknown"),
        ({**GROUP, "containerEdits": {"mounts": "/x"}}, "containerEdits.mounts is a string"),
        (edits(mounts=[{"hostPath": "/" + "x" * 10_001, "containerPath": "/x"}]), "may have at most 10000"),
        (edits(deviceNodes=[{"pth": "/dev/x"}]), "deviceNodes[0].pth is unknown; did you mean path"),
        (edits(deviceNodes=[{}]), "deviceNodes[0].path is missing"),
        (edits(deviceNodes=[7]), "deviceNodes[0] is an integer, but must be a mapping"),
        (edits(deviceNodes=[{"path": "dev/x"}]), "must be a path that begins with /"),
        (edits(deviceNodes=[{"path": "/x", "type": "d"}]), "type is 'd', but must be b, c, u or p"),
        (edits(deviceNodes=[{"path": "/x", "permissions": "rwx"}]), "must be 1 to 3 letters of rwm"),
        (edits(deviceNodes=[{"path": "/x", "major": -1}]), "major must be 0 to"),
        (edits(deviceNodes=[{"path": "/x", "fileMode": "0666"}]), "fileMode is a string"),
        (edits(mounts=[{"hostPath": 5}]), "mounts[0].hostPath is an integer"),
        (edits(mounts=[{"hostPath": "/x"}]), "mounts[0].containerPath is missing"),
        (edits(mounts=[{"hostPath": "/x", "containerPath": "/x", "options": "ro"}]), "options is a string"),
        (edits(hooks=["hello"]), "hooks[0] is a string, but must be a mapping"),
        (edits(hooks=[{"hookName": "createRuntme", "path": "/x"}]), "did you mean createRuntime"),
        (edits(hooks=[{"hookName": "prestart", "path": "/x", "env": ["A"]}]), "has 'A', but must have variables"),
        (edits(additionalGids=[-1]), "additionalGids must be integers"),
        (edits(additionalGids=[True]), "additionalGids must be integers"),
        ({**GROUP, "attributes": {"a": list(range(24)), "b": list(range(24))}}, "have 50 values"),
        (profile(attributes={"a": list(range(46))}), "have 50 values"),
    ],
)
def test_invalid_optional_fields_of_a_group_are_refused(group: object, part: str) -> None:
    assert part in refusal(hardware(group))


@pytest.mark.parametrize("mounts", ["&me [*me]", "[&a {}, *a]", "[&a [x, x], &b [*a, *a], &c [*b, *b]]"])
def test_an_alias_is_refused_with_its_line(mounts: str) -> None:
    message = refusal(f"spec:\n  devices:\n  - containerEdits: {{mounts: {mounts}}}\n")
    assert "is an alias; write it out" in message
    assert "line 3" in message


EDITS = {
    "deviceNodes": [
        {"path": "/dev/fake{index}", "hostPath": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 0o666,
         "permissions": "rw", "uid": 0, "gid": 5},
        {"path": "/dev/{name}"},
    ],
    "mounts": [{"hostPath": "/opt", "containerPath": "/opt/{name}", "options": ["ro", "bind"], "type": "bind"}],
    "hooks": [{"hookName": "createContainer", "path": "/bin/x", "args": ["x", "{index}"], "env": ["A=b"], "timeout": 5}],
    "additionalGids": [0, 4711],
}  # fmt: skip


def test_all_cdi_fields_of_device_nodes_mounts_and_hooks_are_read() -> None:
    (read,) = hardware_file.parse(hardware(edits(**EDITS)), "x").groups
    assert read.container_edits == EDITS
    assert hardware_file.parse(hardware(edits()), "x").groups[0].container_edits == {}


@pytest.mark.parametrize(
    "rule",
    [
        {"operator": "NotIn", "values": ["a", ""]},
        {"operator": "DoesNotExist"},
        {"operator": "Exists", "values": []},
        {"operator": "Lt", "values": ["-3"]},
    ],
)
def test_every_operator_of_a_node_selector_is_valid(rule: dict[str, object]) -> None:
    assert hardware_file.parse(in_spec(**choosing("matchExpressions", "rack", **rule)), "x").pools[0].node_selector
    named = choosing("matchFields", key="metadata.name", operator="In", values=["node-1"])
    assert hardware_file.parse(in_spec(**named), "x").pools[0].node_selector


def test_the_quantities_of_a_request_policy_are_read_in_canonical_form() -> None:
    read = hardware_file.parse(
        hardware(policy("8Gi", default="1024Mi", validRange={"min": "1Gi", "max": "4Gi", "step": "512Mi"})), "x"
    )
    assert read.groups[0].policies == {"m": RequestPolicy("1Gi", (), "1Gi", "4Gi", "512Mi")}
    assert read.groups[0].shared


def test_the_capacity_of_a_partition_defaults_to_what_it_consumes() -> None:
    (read,) = hardware_file.parse(hardware({**GROUP, "partitions": PARTS}), "x").groups
    assert read.partitions
    assert read.partitions.profiles[0].capacity == {"memory": "4Gi"}
    assert read.size == 3


def in_spec(**more: object) -> str:
    document = yaml.safe_load(hardware(GROUP))
    document["spec"] |= more
    return json.dumps(document)


SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
POOL = {"name": "far", "devices": [{"kind": "port", "count": 1}]}


def choosing(kind: str = "matchExpressions", key: str = "rack", **rule: object) -> dict[str, object]:
    return {"pools": [{**POOL, "nodeSelector": {"nodeSelectorTerms": [{kind: [{"key": key, **rule}]}]}}]}


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"changes": [{"device": ["gpu-0"]}]}, "changes[0].device is unknown; did you mean devices?"),
        ({"changes": [{"absent": True, "attributes": {"a": 1}}]}, "absent cannot be combined with"),
        (
            {"changes": [{"capacity": {"m": {"value": 1, "requestPolicy": {"default": 1}}}}]},
            "cannot change a requestPolicy",
        ),
        ({"pools": [POOL]}, "pools[0] needs either allNodes: true or a nodeSelector"),
        ({"pools": [{**POOL, "allNodes": True, "nodeSelector": SELECTOR}]}, "needs either"),
        ({"pools": [{**POOL, "nodeSelector": {"nodeSelectorTerms": []}}]}, "exactly one term in nodeSelectorTerms"),
        (
            {"pools": [{**POOL, "nodeSelector": {"nodeSelectorTerms": [{"matchLabels": {}}]}}]},
            "must be a node selector with exactly one term",
        ),
        (choosing(operator="Foo"), "has the operator 'Foo'; known: DoesNotExist, Exists"),
        (choosing(operator="Exist"), "did you mean Exists"),
        (choosing(key="a b", operator="Exists"), "has the key 'a b', but it must be a label key"),
        (choosing(operator="In"), "has 0 values, which In does not allow"),
        (choosing(operator="Exists", values=["x"]), "has 1 values, which Exists does not allow"),
        (choosing(operator="In", values=["x y"]), "are not valid for In"),
        (choosing(operator="In", values="x"), "are not valid for In"),
        (choosing(operator="Gt", values=["x"]), "are not valid for Gt"),
        (choosing(operator="Lt", values=["1", "2"]), "has 2 values, which Lt does not allow"),
        (choosing(operator="Exists", value="x"), "is not a mapping of key, operator and values"),
        (choosing("matchFields", operator="In", values=["x"]), "but it must be metadata.name"),
        (choosing("matchFields", key="metadata.name", operator="Gt", values=["1"]), "has the operator 'Gt'"),
        ({"pools": [{**POOL, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": []}]}}]}, "a list of requirements"),
        ({"pools": [{**POOL, "allNodes": True}] * 2}, "pools has two pools with the same name"),
        ({"pools": [{**POOL, "name": "Far", "allNodes": True}]}, "pools[0].name is 'Far'"),
        (
            {"devices": [{**GROUP, "partitions": PARTS}, {"kind": "gpu-0", "count": 1}]},
            "could have the same names as partitions",
        ),
    ],
)
def test_invalid_changes_and_pools_are_refused(more: dict[str, object], part: str) -> None:
    assert part in refusal(in_spec(**more))


def test_network_pools_and_changes_are_read() -> None:
    pools = [{**POOL, "nodeSelector": SELECTOR}, {**POOL, "name": "near", "allNodes": True}]
    read = hardware_file.parse(
        in_spec(pools=pools, changes=[{"nodes": ["a*"], "taints": [{"key": "x", "effect": "None"}]}]), "x"
    )
    assert [(pool.name, pool.node_selector) for pool in read.pools] == [("far", SELECTOR), ("near", None)]
    assert read.changes == (DeviceChange(nodes=("a*",), taints=(Taint("x", "None"),)),)


def test_a_node_with_too_many_devices_is_refused() -> None:
    assert "20000 devices" in refusal(hardware({"kind": "gpu", "count": 10_000}, {"kind": "nic", "count": 10_000}))


def test_a_duplicate_key_is_refused_with_its_line() -> None:
    assert "duplicate key 'kind'" in refusal("kind: Hardware\nkind: Hardware\n")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.yaml cannot be read"):
        hardware_file.read(tmp_path / "missing.yaml")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        hardware_file.parse(text, "x")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


KEYS = [
    "kind", "count", "attributes", "capacity", "perDevice", "other", "spread", "nodes", "taints", "network", "partitions",
    "allowMultipleAllocations", "bindingConditions", "containerEdits",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), anything).map(lambda fields: {**GROUP, **fields}))
def test_any_group_is_read_or_refused(group: dict[str, object]) -> None:
    try:
        read = hardware_file.parse(hardware(group), "x")
    except ConfigurationError:
        return
    assert 1 <= read.groups[0].count <= MOST_DEVICES
