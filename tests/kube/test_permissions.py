from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.kube.client import Kube
from testbed.kube.permissions import Permission, missing_permissions, summarize
from tests.fakes import api_server
from tests.fakes.api_server import ApiServer, rules_review

RULES = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ACCESS = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
LOG, PODS, NODES = Permission("get", "", "pods/log"), Permission("list", "", "pods"), Permission("list", "", "nodes")


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made


@pytest.fixture
def kube(server: ApiServer, tmp_path: Path) -> Kube:
    return Kube(server.kubeconfig(tmp_path))


def _rule(**facts: Any) -> Any:
    return {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], **facts}


@pytest.mark.parametrize(
    ("rule", "lacking"),
    [
        (_rule(), [LOG, NODES]),
        (_rule(verbs=["*"], resources=["*"]), []),
        (_rule(verbs=["get"], resources=["*/log"]), [NODES, PODS]),
        (_rule(apiGroups=["apps"]), [LOG, NODES, PODS]),
        (_rule(resourceNames=["one"]), [LOG, NODES, PODS]),
    ],
)
def test_missing_permissions_are_found_from_rules(
    server: ApiServer, kube: Kube, rule: Any, lacking: list[Permission]
) -> None:
    server.answers[RULES] = rules_review(rule)
    assert missing_permissions(kube, [NODES, PODS, LOG]) == lacking
    assert ACCESS not in server.requests


def test_permissions_are_checked_one_by_one_if_rules_are_incomplete(server: ApiServer, kube: Kube) -> None:
    server.answers[RULES] = rules_review(_rule(), incomplete=True)
    server.answers[ACCESS] = (201, {"status": {"allowed": True}})
    assert missing_permissions(kube, [PODS, NODES]) == []
    assert server.requests.count(ACCESS) == 1


def test_permissions_are_summarized_by_resource() -> None:
    rights = [Permission("get", "apps", "daemonsets", "mine"), Permission("create", "apps", "daemonsets", "mine"), LOG]
    assert summarize(rights) == ["create, get daemonsets.apps in namespace mine", "get pods/log"]
    assert str(LOG) == "get pods/log"
