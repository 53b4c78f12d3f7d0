"""The permissions of the driver's account at a fake API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.errors import ApiError, DriverFailed, NothingToJudge, TestbedError
from testbed.vocabulary.cluster.accounts import Account
from testbed.vocabulary.world import World

USER = "system:serviceaccount:dra-testbed-driver:gpu"
NODE_EXTRA = "Impersonate-Extra-authentication.kubernetes.io%2Fnode-name"
V1 = {"preferredVersion": {"version": "v1"}, "versions": [{"version": "v1"}]}


class Server:
    """A fake API server that allows `rules`, and `roles` in namespaces. It rejects slices of other nodes with `refusal`."""

    def __init__(self) -> None:
        self.rules: set[tuple[str, ...]] = set()
        self.roles: dict[str, set[tuple[str, ...]]] = {}
        self.slices: dict[str, Any] = {}
        self.refusal, self.why = 403, "not your node"
        self.accepts_all = self.refuses_all = False
        self.asked: list[Any] = []
        self.bodies: list[Any] = []

    def request(self, method: str, path: str, **what: Any) -> Any:
        if path.endswith("subjectaccessreviews"):
            assert what["body"]["spec"]["user"] == USER
            asked = what["body"]["spec"]["resourceAttributes"]
            self.asked.append(asked)
            names = ("verb", "group", "resource", "subresource", "name")
            rules = self.rules | self.roles.get(asked["namespace"], set())
            return {"status": {"allowed": tuple(asked[name] for name in names) in rules}}
        if path == "/apis":
            return {"groups": [{"name": "resource.k8s.io", **V1}]}
        assert what["query"] == {"dryRun": "All"}  # a dry run
        headers = dict(what["headers"])
        assert headers["Impersonate-User"] == USER
        self.bodies.append(what["body"])
        if self.refuses_all:
            raise ApiError(f"{method} {path}", 403, "", "forbidden")
        meant = self.slices[path.rpartition("/")[2]] if method == "DELETE" else what["body"]
        if not self.accepts_all and meant["spec"].get("nodeName") != headers[NODE_EXTRA]:
            raise ApiError(f"{method} {path}", self.refusal, "", self.why)
        return what["body"]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def account(world: Callable[..., World], server: Server, monkeypatch: pytest.MonkeyPatch) -> Account:
    here = world()
    kube: Any = here.kube
    monkeypatch.setattr(kube, "request", server.request)
    for node in ("node-2", "node-1"):
        spec = {"nodeName": node, "serviceAccountName": "gpu"}
        labels = {"labels": {"app": "fake-gpu-driver"}}
        kube.put("Pod", f"driver-{node}", "dra-testbed-driver", spec=spec, metadata=labels)
    return Account(here)


def test_allowed_actions(account: Account, server: Server) -> None:
    server.rules = {("get", "", "pods", "log", ""), ("patch", "g.io", "things", "part", "name")}
    actions = ("get pods/log", "get pods", "patch things/part.g.io name", "patch things/part.g.io other")

    assert account.allowed(*actions) == {"get pods/log", "patch things/part.g.io name"}
    assert account.allowed_somewhere(*actions) == {"get pods/log", "patch things/part.g.io name"}


@pytest.mark.parametrize("namespace", ["dra-testbed-driver", "kube-system"])
def test_a_role_allows_actions_somewhere(account: Account, server: Server, namespace: str) -> None:
    server.roles = {
        namespace: {("get", "", "secrets", "", ""), ("patch", "g.io", "things", "", "")},
        "another": {("list", "", "secrets", "", "")},
    }

    assert account.allowed("get secrets", "patch things.g.io") == frozenset()
    assert account.allowed_somewhere("get secrets", "list secrets") == {"get secrets"}


def test_a_missing_permission_is_reported(account: Account, server: Server) -> None:
    server.rules = {("get", "", "pods", "", "")}

    account.should_be_allowed("get pods")
    with pytest.raises(DriverFailed, match=f"expected {USER} to be allowed to list pods\n  likely cause: no C"):
        account.should_be_allowed("get pods", "list pods")


def test_refusals_of_an_account_without_any_permission_prove_nothing(account: Account, server: Server) -> None:
    with pytest.raises(NothingToJudge, match=f"the driver works, although {USER} may neither get resourceclaims"):
        account.should_be_refused("get secrets")
    kube: Any = account.world.kube
    kube.objects = {key: each for key, each in kube.objects.items() if key[0] != "ResourceSlice"}
    with pytest.raises(DriverFailed, match=f"expected {USER} to be allowed to get resourceclaims.* or create resource"):
        account.should_be_refused("get secrets")
    server.rules = {("create", "resource.k8s.io", "resourceslices", "", "")}
    account.should_be_refused("get secrets")


def test_a_surplus_permission_is_reported_in_any_namespace(account: Account, server: Server) -> None:
    server.rules = {("get", "", "pods", "", ""), ("get", "resource.k8s.io", "resourceclaims", "", "")}
    server.roles = {"kube-system": {("get", "", "secrets", "", ""), ("list", "", "secrets", "", "")}}

    account.should_be_refused("get secrets", "list pods", anywhere=["watch secrets"], writing=["pods"])
    with pytest.raises(DriverFailed, match=f"expected {USER} not to be allowed to get pods, get secrets\n  likely"):
        account.should_be_refused("get pods", anywhere=["get secrets"])
    with pytest.raises(DriverFailed, match="not to be allowed to get secrets\n  likely"):
        account.should_be_refused(elsewhere=["get secrets"])
    server.roles = {"dra-testbed-driver": {("get", "", "secrets", "", "")}}
    account.should_be_refused(elsewhere=["get secrets"])
    server.roles["dra-testbed-driver"] = {("patch", "g.io", "things", "", "")}
    with pytest.raises(DriverFailed, match=r"not to be allowed to patch things\.g\.io"):
        account.should_be_refused(writing=["secrets", "things.g.io"])


def test_slices_are_written_as_the_account_in_a_dry_run(account: Account, server: Server) -> None:
    assert account.node == "node-1"
    assert account.refusal_to_publish(node="node-1") == ""
    assert account.refusal_to_publish(node="node-2") == "not your node"
    assert account.refusal_to_publish() == "not your node"
    assert account.refusals_to_change_slices_of_others() == {"not your node"}
    server.slices = {each["metadata"]["name"]: each for each in account.world.slices()}
    assert account.refusals_to_delete_slices_of_others() == {"not your node"}


def test_new_slices_are_named_as_those_of_the_driver(account: Account, server: Server) -> None:
    kube: Any = account.world.kube
    driver, (own, *_) = account.world.driver_file.driver, account.world.slices()
    kube.objects[own["kind"], own["metadata"].get("namespace", "default"), own["metadata"]["name"]]["spec"] = {
        **own["spec"], "nodeName": "node-1", "pool": {**own["spec"]["pool"], "name": "its-pool"}
    }  # fmt: skip
    account.refusal_to_publish(node="another-node")
    kube.objects = {key: each for key, each in kube.objects.items() if key[0] != "ResourceSlice"}
    account.refusal_to_publish()
    assert [each["spec"]["pool"]["name"] for each in server.bodies] == ["its-pool", "node-1"]
    assert {each["metadata"]["generateName"] for each in server.bodies} == {f"node-1-{driver}-"}


def test_an_error_that_is_no_rejection_is_raised(account: Account, server: Server) -> None:
    server.refusal = 500
    with pytest.raises(ApiError, match="not your node"):
        account.refusal_to_publish()


def test_a_harness_that_may_not_impersonate_does_not_judge_the_driver(account: Account, server: Server) -> None:
    server.why = (
        'users "x" is forbidden: User "y" cannot impersonate resource "users" in API group "" at the cluster scope'
    )
    with pytest.raises(TestbedError, match="cannot act as system:serviceaccount"):
        account.refusal_to_publish()


def test_a_driver_without_pods_blames_the_driver(world: Callable[..., World]) -> None:
    with pytest.raises(DriverFailed, match="no pod of the driver is bound to a node"):
        Account(world()).allowed("get pods")


def _policy(version: str = "*", user: str = USER, resource: str = "resourceslices") -> dict[str, Any]:
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": [version], "resources": [resource]}
    condition = {"expression": f"request.userInfo.username == '{user}' && 'gpu.dra-testbed.example' != ''"}
    return {"matchConstraints": {"resourceRules": [rule]}, "matchConditions": [condition]}


def _put(account: Account, **spec: Any) -> None:
    kube: Any = account.world.kube
    kube.put("ValidatingAdmissionPolicy", "slices", spec=spec)


def test_an_account_that_is_restricted_to_its_node_is_correct(account: Account, server: Server) -> None:
    server.slices = {each["metadata"]["name"]: each for each in account.world.slices()}
    account.should_publish_its_own_slices()
    account.should_not_publish(node="another-node")
    account.should_not_publish()
    account.should_not_write_slices_of_others()


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({}, "no ValidatingAdmissionPolicy for ResourceSlices is of this driver"),
        (_policy(), "ValidatingAdmissionPolicy slices accepts it, or has no binding that denies"),
        (_policy("v1beta1"), "slices matches only v1beta1 of resource.k8s.io, and the API server serves v1"),
        (_policy(user="system:serviceaccount:x:y"), f"is for system:serviceaccount:x:y, and .* account is {USER}"),
        (_policy("v1", resource="resourceclaims"), "no ValidatingAdmissionPolicy"),
    ],
)
def test_a_surplus_right_to_publish_is_explained(
    account: Account, server: Server, spec: dict[str, Any], cause: str
) -> None:
    server.accepts_all = True
    _put(account, **spec)
    with pytest.raises(
        DriverFailed, match=rf"not to be allowed to publish a slice of node other\n  likely cause: .*{cause}"
    ):
        account.should_not_publish(node="other")
    with pytest.raises(DriverFailed, match=r"to change a slice of another node\n"):
        account.should_not_write_slices_of_others()


def test_policies_that_match_nothing_are_named(account: Account) -> None:
    with pytest.raises(NothingToJudge, match="installs no ValidatingAdmissionPolicy"):
        _ = account.policy_problems
    _put(account, **_policy())
    assert account.policy_problems == ()
    _put(account, **_policy("v1beta1", "system:serviceaccount:x:y"))
    assert len(account.policy_problems) == 2


def test_slices_of_another_account_are_not_judged_by_the_rights_of_the_pods(account: Account, server: Server) -> None:
    server.refuses_all = True
    with pytest.raises(NothingToJudge, match=f"another account than {USER} publishes"):
        account.should_publish_its_own_slices()
    account.should_be_allowed("create resourceslices.resource.k8s.io")
    kube: Any = account.world.kube
    kube.objects = {key: each for key, each in kube.objects.items() if key[0] != "ResourceSlice"}
    with pytest.raises(DriverFailed, match="allowed to publish a slice of its node node-1\n  last seen: forbidden"):
        account.should_publish_its_own_slices()
    with pytest.raises(DriverFailed, match="to be allowed to create resourceslices"):
        account.should_be_allowed("create resourceslices.resource.k8s.io")
