"""The run request that pytest's command line makes. The controller builds it once; workers get it from the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from testbed import folders
from testbed.conformance import catalogue, profiles
from testbed.errors import UsageError
from testbed.models.run_request import RunRequest, run_request
from testbed.reporting import earlier_report


def request_of(config: pytest.Config) -> RunRequest:
    """Return the request of `dra-testbed run`, or the one that the options make."""
    option = config.option
    if option.dra_run_request:
        try:
            return RunRequest.model_validate_json(option.dra_run_request)
        except ValidationError as wrong:
            raise UsageError(f"--run-request is not a run request: {wrong}", hint="use --testbed NAME") from wrong
    given = {name: getattr(option, f"dra_{name}", None) for name in RunRequest.model_fields}
    if option.dra_failed:
        given["failed"] = earlier_report.failed_in(_earlier_report(config))
    narrowed_by = [option.keyword, option.markexpr, option.dra_failed, *option.dra_tiers, *_parts_of_suites(config)]
    profile = profiles.select_profile(option.dra_profile, narrowed_by)
    return run_request({**given, "profile": profile, "keyword": option.keyword, "tests": config.args})


def check_earlier_report(config: pytest.Config, driver_file: Path) -> None:
    """Refuse a report for --failed that is about another driver."""
    if config.option.dra_failed and not config.option.dra_run_request:
        earlier_report.compare_driver(_earlier_report(config), driver_file)


def check_settings(config: pytest.Config) -> None:
    """Refuse a test that does not exist, and settings of another project.

    pytest chooses its settings before it knows our options, by all words that are names of files.
    """
    here, suites = config.invocation_params.dir, folders.data("suites")
    for word in config.args:
        path = word.partition("::")[0]
        if not (here / path).exists() and (suites / path).exists():
            raise pytest.UsageError(f"there is no {path} here; test IDs are relative to {suites}: {suites / word}")
        top = catalogue.suites_root(here / path)
        settings = top / "pytest.ini" if top else None
        if settings and settings.is_file() and config.inipath != settings and not config.option.inifilename:
            raise pytest.UsageError(
                f"pytest uses the settings of {config.inipath} and not those of {top}, because it takes the word after an option for a "
                "test: write --report=DIR and --driver=FILE, with an equals sign"
            )


def _earlier_report(config: pytest.Config) -> Path:
    return config.invocation_params.dir / str(config.option.dra_failed)


def _parts_of_suites(config: pytest.Config) -> list[str]:
    """Return the words that name a part of the suites, and not the suites as a whole."""
    named = {word: (config.invocation_params.dir / word).resolve() for word in config.args}
    return [word for word, path in named.items() if catalogue.suites_root(path) != path]
