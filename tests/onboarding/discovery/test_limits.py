from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from testbed.onboarding.discovery import limits
from testbed.rendering import render_file

MANIFEST = Path(limits.__file__).with_name("limits.yaml")


def rendered(*parts: str) -> dict[str, Any]:
    """Return the specs of the objects by kind and name."""
    given: dict[str, object] = {"parts": list(parts), "node": "node-1", "image": "busybox", "device_class": "gpus"}
    documents = yaml.safe_load_all(render_file(MANIFEST, given))
    return {f"{each['kind']}/{each['metadata']['name']}": each["spec"] for each in documents if each}


def test_a_second_pod_uses_the_claim_of_the_first() -> None:
    assert set(rendered("first")) == {"ResourceClaim/device", "Pod/first"}
    second = rendered("second")
    assert set(second) == {"Pod/second"}
    assert second["Pod/second"]["resourceClaims"] == [{"name": "device", "resourceClaimName": "device"}]


def test_only_one_container_of_the_first_pod_refers_to_the_claim() -> None:
    workload, other = rendered("first")["Pod/first"]["containers"]
    assert workload["resources"] == {"claims": [{"name": "device"}]}
    assert "resources" not in other


def test_an_administrator_only_looks_at_devices() -> None:
    (request,) = rendered("admin")["ResourceClaim/admin"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpus", "adminAccess": True}


def test_each_other_use_has_claims_of_its_own() -> None:
    found = rendered("both", "one", "several")
    references = {
        pod: [each["resources"]["claims"] for each in found[f"Pod/{pod}"]["containers"]]
        for pod in ("both", "one", "several")
    }
    assert references == {
        "both": [[{"name": "both"}], [{"name": "both"}]],
        "one": [[{"name": "one", "request": "device"}]],
        "several": [[{"name": "left"}, {"name": "right"}]],
    }
    assert {each for each in found if each.startswith("ResourceClaim/")} == {
        f"ResourceClaim/{name}" for name in ("both", "one", "left", "right")
    }
