"""Our workflows keep the rules of this house, and each rule can fail. actionlint reads them in `tox -e lint`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ci.check_workflows import ACTION, PAGE, as_workflow, blocks, check_all, check_pins, check_steps, check_workflow

PIN = "uses: actions/checkout@" + "a" * 40
GOOD: dict[str, Any] = {
    "permissions": {"contents": "read"},
    "concurrency": "one",
    "jobs": {"one": {"timeout-minutes": 5, "steps": [{"run": "ci/tox -e lint"}]}},
}


def test_our_workflows_keep_every_rule() -> None:
    assert list(check_all()) == []


def test_a_good_workflow_is_good() -> None:
    assert list(check_workflow(GOOD)) == []


@pytest.mark.parametrize(
    "change", [{"permissions": {"contents": "write"}}, {"permissions": None}, {"concurrency": None}]
)
def test_a_workflow_that_may_write_or_runs_twice_is_told(change: dict[str, Any]) -> None:
    changed = {key: value for key, value in (GOOD | change).items() if value is not None}

    assert list(check_workflow(changed))


@pytest.mark.parametrize("change", [{"timeout-minutes": None}, {"permissions": {"packages": "write"}}])
def test_a_job_without_end_or_with_rights_of_its_own_is_told(change: dict[str, Any]) -> None:
    job = {key: value for key, value in (GOOD["jobs"]["one"] | change).items() if value is not None}

    assert list(check_workflow(GOOD | {"jobs": {"one": job}}))


@pytest.mark.parametrize(
    "line",
    ["uses: actions/checkout@v4", f"{PIN}", f"{PIN} # v7", "uses: actions/checkout@main # v7.0.0", "uses: ./../other"],
)
def test_what_is_not_pinned_with_its_version_is_told(line: str) -> None:
    assert bool(list(check_pins(f"    - {line}\n"))) == (not line.startswith("uses: ./"))


def test_one_action_is_one_commit_everywhere_also_in_its_parts() -> None:
    restore, save = f"uses: actions/cache/restore@{'a' * 40} # v5.0.5", f"uses: actions/cache/save@{'b' * 40} # v5.0.5"

    assert list(check_pins(f"- {restore}\n- {save}\n")) == ["pinned to two commits: actions/cache/save"]


@pytest.mark.parametrize(
    "script", ["ci/tox -e lint", "tox", "ci/as-root ci/tox -e e2e", ".ci/run", '"$GITHUB_ACTION_PATH/judge"']
)
def test_tox_and_our_scripts_may_be_run(script: str) -> None:
    assert list(check_steps([{"run": script}])) == []


@pytest.mark.parametrize(
    "script",
    [
        "pip install tox", "ci/tox\ncurl example.com", "ci/nowhere", "ci/as-root ci/nowhere", "ci/as-root apt-get update", "ci/Dockerfile",
        "ci/tox -e ${{ github.head_ref }}", '"$GITHUB_ACTION_PATH/nowhere"',
    ],
)  # fmt: skip
def test_anything_else_is_told(script: str) -> None:
    assert list(check_steps([{"run": script}]))


def test_the_action_as_a_workflow_has_its_steps_and_inputs() -> None:
    action = yaml.safe_load(ACTION.read_text())
    workflow = yaml.safe_load(as_workflow(action))

    assert workflow["jobs"]["action"]["steps"] == action["runs"]["steps"]
    assert workflow["on" if "on" in workflow else True]["workflow_call"]["inputs"].keys() == action["inputs"].keys()


def test_every_input_reaches_the_script_or_a_step() -> None:
    text = ACTION.read_text()

    assert [name for name in yaml.safe_load(text)["inputs"] if f"${{{{ inputs.{name} }}}}" not in text] == []


def test_the_key_of_the_cache_is_made_of_the_inputs_that_are_judged_by() -> None:
    steps = {step["id"]: step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if "id" in step}
    key, judge = (
        {name: value for name, value in steps[step]["env"].items() if name.startswith("INPUT_")}
        for step in ("key", "judge")
    )

    assert key == judge


def test_the_page_names_every_input_and_output_of_the_action() -> None:
    action, page = yaml.safe_load(ACTION.read_text()), PAGE.read_text()

    assert [name for name in (*action["inputs"], *action["outputs"]) if f"`{name}`" not in page] == []


def test_the_workflow_in_the_docs_uses_the_action_as_it_is() -> None:
    github, gitlab = map(yaml.safe_load, blocks(PAGE.read_text()))
    (used,) = [step for step in github["jobs"]["conformance"]["steps"] if "/ci/action@" in step.get("uses", "")]
    pinned = [line for line in blocks(PAGE.read_text())[0].splitlines() if "uses: actions/" in line]

    assert used["with"].keys() <= yaml.safe_load(ACTION.read_text())["inputs"].keys()
    assert pinned
    assert list(check_pins("\n".join([*pinned, ACTION.read_text()]))) == []
    assert gitlab["conformance"]["artifacts"]["reports"]["junit"].startswith(
        gitlab["conformance"]["artifacts"]["paths"][0] + "/"
    )


def test_every_environment_that_the_workflows_run_is_one_of_ours() -> None:
    root = Path(__file__).parents[2]
    known = {line[9:-1] for line in (root / "tox.ini").read_text().splitlines() if line.startswith("[testenv:")}
    used: set[str] = set()
    for file in (root / ".github/workflows").glob("*.yml"):
        content = yaml.safe_load(file.read_text())
        for job in content["jobs"].values():
            used |= set(job.get("strategy", {}).get("matrix", {}).get("environment", []))
            scripts = [step["run"] for step in job["steps"] if " -e " in step.get("run", "")]
            used |= {name for script in scripts for name in script.split(" -e ")[1].split()[0].split(",")}

    assert used - {'"$ENVIRONMENT"'} <= known


def test_what_makes_nodes_runs_as_root_after_its_packages_were_installed() -> None:
    """A node image is made with mmdebstrap, and a node's processes are seen by root alone."""
    root = Path(__file__).parents[2]
    needs_root = {"cluster", "e2e", "kind", "kind-cluster", "matrix", "vm", '"$ENVIRONMENT"'}
    seen = set()
    for file in (root / ".github/workflows").glob("*.yml"):
        for name, job in yaml.safe_load(file.read_text())["jobs"].items():
            scripts = [step["run"] for step in job["steps"] if "run" in step]
            for script in scripts:
                if "tox -e " in script and set(script.split(" -e ")[1].split()[0].split(",")) & needs_root:
                    seen.add(name)
                    assert script.startswith("ci/as-root ci/tox"), name
                    assert "ci/as-root ci/install-host-packages" in scripts[: scripts.index(script)], name

    assert seen == {"cluster", "e2e", "kind", "slow"}
