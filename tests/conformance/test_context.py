from __future__ import annotations

from pathlib import Path

from testbed.conformance.context import RunContext
from testbed.conformance.selection import Facts


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
        network_devices=3,
        shared_devices=1,
        most_devices=40,
    )
    context = RunContext(
        testbed="t",
        driver_file=Path("/a/driver.yaml"),
        report=Path("/b/report"),
        facts=facts,
        provider="local",
        runtime="containerd://2",
        tiers=frozenset({"e2e"}),
        patience=2.5,
        feature_gates={"DRAAdminAccess": True},
    )
    assert RunContext.from_json(context.to_json()) == context
