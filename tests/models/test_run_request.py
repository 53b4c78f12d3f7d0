from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.models.config import TestbedConfig, effective
from testbed.models.requirement_enums import Tier
from testbed.models.run_request import RunRequest, run_request

FAKE_NIC = effective(None, {"driver": "fake-nic"}).driver


def test_a_request_is_the_same_after_it_was_text() -> None:
    config = effective(None, {"name": "mine", "nodes": 3, "feature_gates": {"DRAAdminAccess": True}})
    options = {"report": "out", "tiers": ("e2e",), "workers": "auto", "fail_on": "must", "keyword": " cats "}
    made = run_request(options, config)
    assert (made.testbed, made.driver, made.report) == ("mine", config.driver, Path.cwd() / "out")
    assert (made.tiers, made.workers, made.keyword, made.patience) == ((Tier.E2E,), "auto", "cats", 1.0)
    assert RunRequest.model_validate_json(made.model_dump_json(by_alias=True)) == made


def test_a_driver_that_comes_with_us_is_named_by_its_name() -> None:
    assert run_request({"testbed": "t", "report": "out", "driver": "fake-nic"}).driver == FAKE_NIC


def test_a_testbed_is_judged_by_its_own_driver_unless_another_one_is_named() -> None:
    config = TestbedConfig(driver=Path("/its/own.yaml"))
    assert run_request({"testbed": "t", "report": "out"}).driver_file(config) == config.driver
    assert run_request({"testbed": "t", "report": "out", "driver": "fake-nic"}).driver_file(config) == FAKE_NIC
    with pytest.raises(UsageError, match="testbed t has no driver of its own"):
        run_request({"testbed": "t", "report": "out"}).driver_file(TestbedConfig())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tiers": ["e3e"]}, "--tier: is 'e3e', but must be 'static', 'wire', 'e2e' or 'disruptive'; did you mean e2e"),
        ({"patience": 0}, "--patience: is 0, but must be more than 0"),
        ({"fail_on": "shuold"}, "--fail-on: is 'shuold', but must be 'must', 'should' or 'may'; did you mean should"),
        ({"driver": "none"}, "nothing to judge without a driver"),
        ({"driver": "fake-gpus"}, "--driver: is 'fake-gpus'.*did you mean fake-gpu"),
        ({"tiers": ["e3e"], "patience": -1}, "(?s)--tier.*--patience"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        run_request({"testbed": "t", "report": "out", **options})


def test_a_new_testbed_without_a_driver_cannot_be_judged() -> None:
    with pytest.raises(UsageError, match="nothing to judge"):
        run_request({"report": "out"}, effective(None, {"driver": "none"}))


@pytest.mark.parametrize(
    ("keep", "code", "keeps"),
    [("never", 1, False), ("on-failure", 0, False), ("on-failure", 4, True), ("always", 0, True)],
)
def test_whether_the_testbed_stays_depends_on_the_exit_code(keep: str, code: int, keeps: bool) -> None:
    assert run_request({"testbed": "t", "report": "out", "keep": keep}).keeps_testbed(code) is keeps
