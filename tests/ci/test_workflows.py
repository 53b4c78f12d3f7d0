"""Our workflows follow our rules, and each rule can fail. `tox -e lint` runs actionlint."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.check_workflows import (
    ACTION,
    PAGE,
    ROOT,
    as_workflow,
    blocks,
    check_all,
    check_pins,
    check_steps,
    check_workflow,
    workflows,
)
from testbed.process import run
from tests.ci.conftest import Host, read

TOX = RawConfigParser()
TOX.read(ROOT / "tox.ini")
PIN = "uses: actions/checkout@" + "a" * 40
GOOD: dict[str, Any] = {
    "permissions": {"contents": "read"},
    "concurrency": "one",
    "jobs": {"one": {"timeout-minutes": 5, "steps": [{"run": "ci/tox -e lint"}]}},
}


def test_our_workflows_follow_every_rule() -> None:
    assert list(check_all()) == []


def test_a_correct_workflow_has_no_problems() -> None:
    assert list(check_workflow(GOOD)) == []


@pytest.mark.parametrize(
    "change", [{"permissions": {"contents": "write"}}, {"permissions": None}, {"concurrency": None}]
)
def test_a_workflow_that_may_write_or_has_no_concurrency_group_is_reported(change: dict[str, Any]) -> None:
    changed = {key: value for key, value in (GOOD | change).items() if value is not None}

    assert list(check_workflow(changed))


@pytest.mark.parametrize("change", [{"timeout-minutes": None}, {"permissions": {"packages": "write"}}])
def test_a_job_without_timeout_or_with_own_permissions_is_reported(change: dict[str, Any]) -> None:
    job = {key: value for key, value in (GOOD["jobs"]["one"] | change).items() if value is not None}

    assert list(check_workflow(GOOD | {"jobs": {"one": job}}))


@pytest.mark.parametrize(
    "line",
    ["uses: actions/checkout@v4", f"{PIN}", f"{PIN} # v7", "uses: actions/checkout@main # v7.0.0", "uses: ./../other"],
)
def test_an_action_that_is_not_pinned_with_its_version_is_reported(line: str) -> None:
    assert bool(list(check_pins(f"    - {line}\n"))) == (not line.startswith("uses: ./"))


def test_an_action_and_its_parts_are_pinned_to_one_commit() -> None:
    restore, save = f"uses: actions/cache/restore@{'a' * 40} # v5.0.5", f"uses: actions/cache/save@{'b' * 40} # v5.0.5"

    assert list(check_pins(f"- {restore}\n- {save}\n")) == ["pinned to two commits: actions/cache/save"]


@pytest.mark.parametrize(
    "script", ["ci/tox -e lint", "tox", "ci/as-root ci/tox -e e2e", ".ci/run", '"$GITHUB_ACTION_PATH/judge"']
)
def test_a_step_may_call_tox_or_one_of_our_scripts(script: str) -> None:
    assert list(check_steps([{"run": script}])) == []


@pytest.mark.parametrize(
    "script",
    [
        "pip install tox", "ci/tox\ncurl example.com", "ci/nowhere", "ci/as-root ci/nowhere", "ci/as-root apt-get update", "ci/Dockerfile",
        "ci/tox; curl example.com", "ci/tox -e lint && true", "ci/tox -e $(cat name)", "ci/tox | tee log", "ci/tox -e lint > log",
        "ci/tox -e ${{ github.head_ref }}", '"$GITHUB_ACTION_PATH/nowhere"',
    ],
)  # fmt: skip
def test_any_other_command_is_reported(script: str) -> None:
    assert list(check_steps([{"run": script}]))


def test_the_action_as_a_workflow_has_its_steps_and_inputs() -> None:
    action = yaml.safe_load(ACTION.read_text())
    workflow = yaml.safe_load(as_workflow(action))

    assert workflow["jobs"]["action"]["steps"] == action["runs"]["steps"]
    assert workflow["on" if "on" in workflow else True]["workflow_call"]["inputs"].keys() == action["inputs"].keys()


def test_every_input_reaches_the_script_or_a_step() -> None:
    text = ACTION.read_text()

    assert [name for name in yaml.safe_load(text)["inputs"] if f"${{{{ inputs.{name} }}}}" not in text] == []


def test_the_steps_key_and_judge_get_the_same_inputs() -> None:
    steps = {step["id"]: step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if "id" in step}
    key, judge = (
        {name: value for name, value in steps[step]["env"].items() if name.startswith("INPUT_")}
        for step in ("key", "judge")
    )

    assert key == judge


def test_the_page_names_every_input_and_output_of_the_action() -> None:
    action, page = yaml.safe_load(ACTION.read_text()), PAGE.read_text()

    assert [name for name in (*action["inputs"], *action["outputs"]) if f"`{name}`" not in page] == []


def test_the_workflow_in_the_docs_uses_inputs_that_the_action_has() -> None:
    github, gitlab = map(yaml.safe_load, blocks(PAGE.read_text()))
    (used,) = [step for step in github["jobs"]["conformance"]["steps"] if "/ci/action@" in step.get("uses", "")]
    pinned = [line for line in blocks(PAGE.read_text())[0].splitlines() if "uses: actions/" in line]

    assert used["with"].keys() <= yaml.safe_load(ACTION.read_text())["inputs"].keys()
    assert pinned
    assert list(check_pins("\n".join([*pinned, ACTION.read_text()]))) == []
    assert gitlab["conformance"]["artifacts"]["reports"]["junit"].startswith(
        gitlab["conformance"]["artifacts"]["paths"][0] + "/"
    )


def jobs() -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Every job with its name and its commands, with the variables of the matrix filled in."""
    for file in workflows():
        for name, job in yaml.safe_load(file.read_text())["jobs"].items():
            names = ",".join(job.get("strategy", {}).get("matrix", {}).get("environment", []))
            commands = [step["run"].replace('"$ENVIRONMENT"', names) for step in job["steps"] if "run" in step]
            yield name, job, commands


def environments(command: str) -> set[str]:
    return set(command.partition("tox -e ")[2].partition(" ")[0].split(",")) - {""}


def test_the_workflows_run_environments_of_tox_ini_and_upload_what_these_write() -> None:
    for name, job, commands in jobs():
        used = {each for command in commands for each in environments(command)}
        assert [(name, each) for each in used if f"testenv:{each}" not in TOX] == []
        for upload in (step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")):
            environment, _, written = upload.removeprefix(".tox/").partition("/tmp")
            assert environment in {*used, "${{ matrix.environment }}"}
            assert (
                "{env_tmp_dir}" + written
                in TOX[f"testenv:{environment if environment in used else 'matrix'}"]["commands"]
            )


def test_nightly_runs_the_same_environments_with_tox_as_on_github() -> None:
    (nightly,) = (job for name, job, _ in jobs() if name == "slow")
    commands = TOX["testenv:nightly"]["commands"].split("\n")

    assert [line.removeprefix("tox -e ") for line in commands if line] == nightly["strategy"]["matrix"]["environment"]


def test_jobs_that_create_nodes_run_as_root_after_installing_packages() -> None:
    """Mmdebstrap builds node images, and only root sees the processes of a node."""
    needs_root = {"cluster", "e2e", "kind", "kind-cluster", "matrix", "mutants", "peers", "vm"}
    seen = set()
    for name, _, commands in jobs():
        for number, command in enumerate(commands):
            if environments(command) & needs_root:
                seen.add(name)
                assert command.startswith("ci/as-root ci/tox"), name
                assert "ci/as-root ci/install-host-packages" in commands[:number], name

    assert seen == {"cluster", "e2e", "kind", "slow"}


def test_ci_tox_installs_tox_and_passes_its_arguments_on(host: Host, tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci/tox", tmp_path / "ci/tox")
    host.has("python3", f'mkdir -p "$3/bin"; ln -s {host.programs}/pip {host.programs}/tox "$3/bin"')
    for program in ("pip", "tox"):
        host.has(program, f'echo "$*" >{host.notes}/{program}')
    run([tmp_path / "ci/tox", "-e", "lint,unit"])

    assert (read(host.notes / "pip"), read(host.notes / "tox")) == ("install --quiet tox\n", "-e lint,unit\n")
    assert (tmp_path / ".tox/ci/bin/tox").exists()


def test_host_packages_are_installed_where_their_programs_are_missing(host: Host) -> None:
    host.has("apt-get", f'echo "$*" >>{host.notes}/apt-get')
    host.has("python3", "exit 1")
    (host.programs / "bash").symlink_to("/bin/bash")
    run(["/bin/bash", ROOT / "ci/install-host-packages"], env={"PATH": str(host.programs)})

    _, installed = read(host.notes / "apt-get").splitlines()
    assert {"util-linux", "iproute2", "mmdebstrap", "gcc", "python3-venv"} <= set(installed.split())
