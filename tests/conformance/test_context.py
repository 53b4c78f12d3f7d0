from __future__ import annotations

from pathlib import Path

from testbed.conformance.context import RunContext
from testbed.conformance.selection import Facts
from testbed.models.config import TestbedConfig
from testbed.models.report import Environment
from testbed.models.requirement_enums import Tier
from testbed.models.run_request import RunRequest


def test_a_worker_knows_exactly_what_the_controller_decided() -> None:
    facts = Facts(
        "v1.37.0",
        2,
        16,
        frozenset({"load-image", "run-on-node"}),
        frozenset({"taints"}),
        frozenset({"DRADeviceTaints"}),
        4,
        frozenset({"capacity"}),
        given=frozenset({"few"}),
        max_node_devices=40,
    )
    context = RunContext(
        request=RunRequest(
            testbed="t", new_testbed=TestbedConfig("t"), report=Path("/b/report"), tiers=(Tier.E2E,), patience=2.5
        ),
        driver_file=Path("/a/driver.yaml"),
        environment=Environment(
            testbed="t",
            provider="local",
            kubernetes="v1.37.0",
            nodes=2,
            runtime="containerd://2",
            feature_gates={"DRAAdminAccess": True},
            gates_assumed=("DRADeviceTaints",),
        ),
        facts=facts,
        session="0123abcd",
    )
    assert RunContext.from_json(context.to_json()) == context
