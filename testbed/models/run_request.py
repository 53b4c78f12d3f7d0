"""What a run is asked to do. `dra-testbed run` and the pytest plugin each build a RunRequest from their options; all else reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints
from pydantic.alias_generators import to_camel

from testbed.errors import UsageError
from testbed.models.config import TestbedConfig, config_from_record, config_to_record, effective
from testbed.models.requirement_enums import Tier
from testbed.models.strict import Published, check_flags

Keep = Literal["never", "on-failure", "always"]
FailOn = Literal["must", "should", "may"]


def _config(value: Any) -> Any:
    return config_from_record(value) if isinstance(value, Mapping) else value


class ReportedRequest(Published):
    """The options that the report repeats, because they decide what a run judges and how strictly."""

    tiers: tuple[Tier, ...] = Field((), description="Tiers that were judged. Empty: all.")
    keyword: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        "", description="The -k expression of the tests that were judged. Empty: all."
    )
    failed: tuple[str, ...] = Field(
        (), description="Requirements that were repeated because they failed in an earlier report. Empty: all."
    )
    known: bool = Field(
        False, description="Whether failures that the driver file lists under `known` do not affect the exit code."
    )
    fail_on: FailOn = Field("must", description="Lowest level of a failed requirement that fails the run.")


class RunRequest(ReportedRequest):
    """What to judge, where, how, and where the report goes. `testbed` is up, unless `new_testbed` says how to make it for this run."""

    testbed: str
    new_testbed: Annotated[
        TestbedConfig | None,
        BeforeValidator(_config),
        PlainSerializer(lambda config: config and config_to_record(config)),
    ] = None
    driver: Path | None = None
    report: Path
    keep: Keep = "never"
    profile: str = "full"
    workers: int | Literal["auto"] = 0
    patience: float = Field(1.0, gt=0)
    verbose: bool = False
    check: bool = True  # try a first device on each node before tests run
    tests: tuple[str, ...] = ()

    def driver_file(self, testbed: TestbedConfig) -> Path:
        """Return the path of the driver file to judge by: the one that was asked for, otherwise the testbed's own."""
        path = self.driver or testbed.driver
        if path is None:
            raise UsageError(
                f"testbed {self.testbed} has no driver of its own", hint="name the driver to judge: --driver FILE"
            )
        return path

    def keeps_testbed(self, exit_code: int) -> bool:
        """Return True if a testbed that was made for the run stays after it ended with this exit code."""
        return self.keep == "always" or (self.keep == "on-failure" and exit_code != 0)


def run_request(options: Mapping[str, Any], new_testbed: TestbedConfig | None = None) -> RunRequest:
    """Return the request that these options make; UsageError names each option that is wrong.

    The options have the names of RunRequest's fields, and None where nothing was given.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if new_testbed is not None:
        given |= {"testbed": new_testbed.name, "driver": new_testbed.driver}
    elif "driver" in given:
        given["driver"] = effective(None, {"driver": given["driver"]}).driver
    if "driver" in given and given["driver"] is None:
        raise UsageError("there is nothing to judge without a driver", hint="leave out --driver none")
    given["report"] = Path(given["report"]).absolute()
    made = check_flags({to_camel(name): value for name, value in given.items()}, RunRequest)
    return made.model_copy(update={"new_testbed": new_testbed})
