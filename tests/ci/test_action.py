"""The scripts of the action's steps, as a runner starts them, with a dra-testbed that needs no cluster."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ci.action_requirements import FILE
from ci.check_workflows import ACTION, ROOT
from testbed import process
from testbed.binaries import lock_for, minors
from tests.ci.conftest import STARTED, Host, read
from tests.ci.runner import Runner, as_variables

PATCH = {minor: lock_for(minor).kubernetes for minor in minors()}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    made = Runner(tmp_path / "run")
    made.workspace.mkdir(parents=True)
    return made


def test_a_conformant_driver_gives_summary_outputs_and_report(host: Host, runner: Runner) -> None:
    host.has_testbed("pass", 0)
    judged = runner.judge({"driver": "my.yaml", "provider": "existing"})

    assert judged.code == 0
    assert judged.outputs == {"verdict": "conformant", "report": str(runner.report), "exit-code": "0"}
    assert "## ✅ gpu.example is conformant" in runner.summarize(judged)
    assert {"report.yaml", "junit.xml", "run.log"} <= runner.uploaded()
    assert "the testbed is up\nand it says" in (runner.report / "run.log").read_text()


def test_a_driver_that_fails_makes_the_step_fail_with_the_verdict_in_the_summary(host: Host, runner: Runner) -> None:
    host.has_testbed("fail", 1)
    judged = runner.judge({"provider": "kind"})
    summary = runner.summarize(judged)

    assert (judged.code, judged.outputs["verdict"], judged.outputs["exit-code"]) == (1, "failed", "1")
    assert "## ❌ gpu.example is failed" in summary
    assert "| **fail** | It works.<br>→ expected two<br>→ likely cause: one bug | `evidence/T-001` |" in summary
    assert (runner.report / "evidence/T-001/pods.yaml").is_file()


@pytest.mark.parametrize(
    ("inputs", "needs"),
    [
        ({}, f"local-{PATCH['1.37']}-driver-workload"),
        ({"provider": "kind", "driver": "none"}, f"kind-{PATCH['1.37']}-workload"),
        ({"arguments": "--driver-image theirs"}, f"local-{PATCH['1.37']}-workload"),
        ({"config": "t.yaml"}, f"kind-{PATCH['1.36']}-{PATCH['1.35']}-driver-workload"),
        ({"arguments": "--config t.yaml --kubelet=1.36"}, f"kind-{PATCH['1.36']}-{PATCH['1.36']}-driver-workload"),
        (
            {"arguments": "--provider=local", "config": "t.yaml", "kubernetes": "1.35"},
            f"local-{PATCH['1.35']}-{PATCH['1.35']}-driver-workload",
        ),
        ({"kubernetes": "1.99"}, "unknown"),
        ({"arguments": "-k 'no end"}, "unknown"),
    ],
)
@pytest.mark.usefixtures("host")
def test_the_key_of_the_cache_names_what_the_run_needs(runner: Runner, inputs: dict[str, str], needs: str) -> None:
    (runner.workspace / "t.yaml").write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: Testbed\nspec: {provider: kind, kubernetes: '1.36', kubelet: '1.35'}\n"
    )
    assert runner.run("key", **as_variables(inputs)).outputs == {"needs": needs}


def test_a_run_that_broke_keeps_its_log_and_the_summary_shows_it(host: Host, runner: Runner) -> None:
    host.has_testbed("", 3)
    judged = runner.judge({"provider": "kind"})
    summary = runner.summarize(judged)

    assert (judged.code, judged.outputs["verdict"], judged.outputs["exit-code"]) == (3, "none", "3")
    assert "## ⚠️ No verdict" in summary
    assert "the harness or the environment failed" in summary
    assert "and it says why it stops" in summary
    assert runner.uploaded() == {"run.log"}


BROKEN_KIND = r"""
import sys
from testbed.bringup.steps import made_cluster
from testbed.cli.main import run
from testbed.providers import inotify

procedure = made_cluster.MadeClusterProcedure
procedure.steps = property(lambda self: (self.create_cluster,))  # the steps before it fetch and build
inotify.available = lambda wanted: wanted
sys.exit(run(sys.argv[1:]))
"""


def test_a_failed_kind_cluster_leaves_kinds_output_and_the_logs_of_the_nodes_in_the_report(
    host: Host, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(runner.folder / "state"))
    made = host.notes / "made"
    host.has("dra-testbed", f"python3 -c '{BROKEN_KIND}' \"$@\"")
    host.has(
        "docker",
        'case "$*" in -v) echo Docker version 1;; *DefaultRuntime*) echo dra-testbed;; info*) ;; volume*) ;; context*) ;;\n'
        f"image*) ;; run*) echo v1.37.1;; ps*) [ ! -e {made} ] || echo node-1 mine;; rm*) rm {made};; esac",
    )
    host.has(
        "kind",
        f'case "$1" in --version) echo kind version 0.31.0;; create) touch {made}; echo "ERROR: port taken"; exit 1;;\n'
        'export) echo "no cgroups" >"$3/node-1.log";; esac',
    )
    judged = runner.judge({"provider": "kind"})
    kept = runner.report

    assert (judged.outputs["verdict"], judged.outputs["exit-code"]) == ("none", "3")
    assert runner.uploaded() == {
        "run.log", "evidence/bring-up/error.txt", "evidence/bring-up/kind.log", "evidence/bring-up/node-1.log",
        "report.yaml", "junit.xml", "events.jsonl",
    }  # fmt: skip
    assert "ERROR: port taken" in (kept / "evidence/bring-up/kind.log").read_text()
    assert f"logs: {kept}/evidence/bring-up" in (kept / "run.log").read_text()
    assert "`evidence/bring-up`" in runner.summarize(judged)
    assert not made.exists()


def test_the_summary_says_when_dra_testbed_is_not_installed(host: Host, runner: Runner) -> None:
    host.has("python3", "exit 1")

    assert "dra-testbed is not installed" in runner.run("summary").summary


def test_a_folder_with_the_report_of_another_run_is_refused_and_not_shown(host: Host, runner: Runner) -> None:
    host.has_testbed("pass", 0)
    runner.report.mkdir()
    (runner.report / "events.jsonl").write_text(json.dumps(STARTED) + "\n")
    judged = runner.judge({"provider": "kind"})
    summary = runner.summarize(judged)

    assert judged.code == 2
    assert judged.outputs == {"verdict": "none", "exit-code": "2"}
    assert "already has a report" in summary
    assert "conformant" not in summary


def test_every_input_becomes_an_argument_of_the_run(host: Host, runner: Runner) -> None:
    host.has_testbed("pass", 0)
    runner.judge({
        "driver": "my driver.yaml", "provider": "existing", "kubernetes": "1.36", "nodes": "3", "config": "c.yaml", "kubeconfig": "k",
        "tier": "static, wire\ne2e", "arguments": "-k 'a or b' --feature-gate X=true", "report": "r",
    })  # fmt: skip

    assert host.argv() == [
        "run", "--driver=my driver.yaml", "--provider=existing", "--kubernetes=1.36", "--nodes=3", "--config=c.yaml", "--kubeconfig=k",
        "--tier=static", "--tier=wire", "--tier=e2e", f"--report={runner.workspace / 'r'}", "-k", "a or b", "--feature-gate", "X=true",
    ]  # fmt: skip


def test_several_drivers_have_the_worst_verdict_and_a_summary_each(host: Host, runner: Runner) -> None:
    host.has_testbed("pass", 0)
    runner.judge({"provider": "kind", "report": "one"})
    host.has_testbed("fail", 1)
    runner.judge({"provider": "kind", "report": "two"})
    made = runner.workspace
    host.has(
        "dra-testbed",
        f"""
printf '%s\\n' "$@" >{host.notes}/argv
mkdir {made}/both; cp -r {made}/one {made}/both/gpu; cp -r {made}/two {made}/both/nic; exit 1""",
    )
    judged = runner.judge({"provider": "kind", "driver": "gpu.yaml\n nic.yaml\n", "report": "both"})
    summary = runner.summarize(judged)

    assert host.argv()[:3] == ["run", "--driver=gpu.yaml", "--driver=nic.yaml"]
    assert (judged.code, judged.outputs["verdict"]) == (1, "failed")
    assert "## ✅ gpu.example is conformant" in summary
    assert "## ❌ gpu.example is failed" in summary
    assert runner.judge({"provider": "kind", "report": "both"}).outputs["verdict"] == "none"


def test_inputs_are_never_run_by_a_shell(host: Host, runner: Runner) -> None:
    host.has_testbed("pass", 0)
    runner.judge({
        "provider": "kind", "driver": '$(touch "$RUNNER_TEMP/owned"); touch owned', "kubernetes": "`touch owned`",
    })  # fmt: skip

    assert "--kubernetes=`touch owned`" in host.argv()
    assert not list(runner.folder.rglob("owned"))


@pytest.mark.parametrize("provider", ["", "local"])
def test_the_local_provider_runs_as_root_and_its_files_belong_to_the_caller(
    host: Host, runner: Runner, root: Callable[[bool], None], provider: str
) -> None:
    host.has_testbed("pass", 0)
    root(False)
    judged = runner.judge({"provider": provider})
    asked, *given_back = read(host.notes / "sudo").splitlines()

    assert judged.outputs["verdict"] == "conformant"
    assert asked.startswith(f"--preserve-env --set-home env PATH={host.programs}:")
    assert given_back == [f"chown -R 1001:1001 {runner.report}"]


def test_root_needs_no_sudo(host: Host, runner: Runner, root: Callable[[bool], None]) -> None:
    host.has_testbed("fail", 1)
    root(True)

    assert runner.judge({"provider": "local"}).outputs["exit-code"] == "1"
    assert read(host.notes / "sudo") == ""


@pytest.mark.parametrize(
    ("config", "arguments", "as_root"),
    [
        ("spec: {provider: existing}", "", False),
        ("spec: {provider: local}", "", True),
        ("spec: {nodes: 1}", "", True),
        ("spec:", "", True),
        ("no: mapping: of ours", "", True),
        ("", "--provider kind", False),
        ("", "--provider existing", False),
        ("", "-k claims --provider=kind", False),
        ("spec: {provider: existing}", "--provider local", True),
        ("spec: {provider: local}", "--provider=local --provider existing", False),
    ],
)
def test_the_provider_decides_whether_the_run_needs_root(
    host: Host, runner: Runner, root: Callable[[bool], None], config: str, arguments: str, as_root: bool
) -> None:
    host.has_testbed("pass", 0)
    root(False)
    (runner.workspace / "my testbed.yaml").write_text(config)
    runner.judge({"config": "my testbed.yaml" if config else "", "arguments": arguments})

    assert bool(read(host.notes / "sudo")) is as_root


@pytest.mark.parametrize(("file", "inputs"), [("local", {"provider": "kind"}), ("kind", {})])
def test_a_config_among_the_arguments_counts_and_the_input_overrides_it(
    host: Host, runner: Runner, root: Callable[[bool], None], file: str, inputs: dict[str, str]
) -> None:
    host.has_testbed("pass", 0)
    root(False)
    (runner.workspace / "mine.yaml").write_text(f"spec: {{provider: {file}}}")
    runner.judge({"arguments": "--config mine.yaml", **inputs})

    assert read(host.notes / "sudo") == ""


@pytest.mark.usefixtures("host")
def test_as_root_exits_with_the_code_of_its_command(root: Callable[[bool], None]) -> None:
    root(False)

    assert process.run([ROOT / "ci/as-root", "bash", "-c", "exit 7"], check=False).code == 7


def test_the_action_installs_nothing_without_a_locked_hash(host: Host, runner: Runner) -> None:
    host.has(
        "python3", f'[ "$2" != venv ] && exec {host.python} "$@"; mkdir -p "$3/bin"; cp {host.programs}/pip "$3/bin"'
    )
    host.has("pip", f'echo "$@" >>{host.notes}/pip')
    runner.run("install")
    locked, own = (line.split() for line in read(host.notes / "pip").splitlines())

    assert {"--require-hashes", str(FILE)} <= {os.path.normpath(word) if "/" in word else word for word in locked}
    assert {"--no-deps", "--no-build-isolation"} <= set(own)


def test_the_steps_of_the_action_read_only_outputs_that_a_script_writes(host: Host, runner: Runner) -> None:
    host.has_testbed("pass", 0)
    host.has(
        "python3", f'[ "$2" != venv ] && exec {host.python} "$@"; mkdir -p "$3/bin"; cp {host.programs}/pip "$3/bin"'
    )
    host.has("pip", "")
    written = {
        "install": runner.run("install").outputs,
        "key": runner.run("key").outputs,
        "judge": runner.judge({"provider": "kind"}).outputs,
    }
    used = re.findall(r"steps\.(\w+)\.outputs\.([\w-]+)", ACTION.read_text())
    steps = [step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if "run" in step]

    assert {(step, name) for step, outputs in written.items() for name in outputs} == {
        (step, name) for step, name in used if step in written
    }
    assert [step["run"] for step in steps] == [f'"$GITHUB_ACTION_PATH/{step["id"]}"' for step in steps]
