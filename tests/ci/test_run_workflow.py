"""The action's steps in order, in a clean copy of the repository, with a dra-testbed that needs no cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ci import run_workflow
from ci.expressions import Unknown
from ci.run_workflow import ROOT, Run, run_action, run_job, started
from testbed import process
from testbed.binaries import lock_for, minors
from tests.ci.conftest import STARTED, Host, read

NO_INSTALL = frozenset({"install"})  # it asks a package index
PATCH = {minor: lock_for(minor).kubernetes for minor in minors()}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose clean copy holds only the action and the workflows, which is all that the steps read."""

    def copy(into: Path) -> None:
        for name in ("ci", ".github"):
            shutil.copytree(ROOT / name, into / name, ignore=_big)

    monkeypatch.setattr(run_workflow, "clean_copy", copy)
    return started(tmp_path / "run", skip=NO_INSTALL)


def _big(_folder: str, names: list[str]) -> set[str]:
    return {"versions", "vm"} & set(names)


def judged(run: Run, *, page: bool = True, **inputs: str) -> Run:
    run.skip |= frozenset() if page else {"summary", "key"}  # these two take most of the time
    run_action(run.workspace / "ci/action", inputs, run)
    return run


def test_a_driver_that_conforms_gives_summary_outputs_and_artifact(host: Host, run: Run) -> None:
    host.has_testbed("pass", 0)
    done = judged(run, driver="my.yaml", provider="existing")

    assert not done.failed
    assert done.outputs == {
        "verdict": "conformant",
        "report": str(run.workspace / "dra-testbed-report"),
        "exit-code": "0",
    }
    assert "## ✅ gpu.example is conformant" in done.summary
    assert (done.artifacts["dra-testbed-report"] / "report.yaml").is_file()
    assert (done.artifacts["dra-testbed-report"] / "junit.xml").is_file()
    assert "the testbed is up\nand it says" in (done.artifacts["dra-testbed-report"] / "run.log").read_text()


def test_a_driver_that_fails_makes_the_step_fail_with_the_verdict_on_the_page(host: Host, run: Run) -> None:
    host.has_testbed("fail", 1)
    done = judged(run, provider="kind")

    assert done.failed
    assert dict(done.steps)["judge"] == "failure"
    assert (done.outputs["verdict"], done.outputs["exit-code"]) == ("non-conformant", "1")
    assert "## ❌ gpu.example is non-conformant" in done.summary
    assert "| **fail** | It works.<br>→ expected two<br>→ likely cause: one bug | `evidence/T-001` |" in done.summary
    assert (done.artifacts["dra-testbed-report"] / "evidence/T-001/pods.yaml").is_file()


def test_the_cache_is_kept_after_a_verdict_and_not_after_a_run_that_broke(host: Host, run: Run) -> None:
    host.has_testbed("fail", 1)
    saved = [
        outcome
        for name, outcome in judged(run, page=False, provider="kind").steps
        if name.startswith("actions/cache/save")
    ]
    host.has_testbed("", 3)
    run.failed, run.steps = False, []
    broke = judged(run, page=False, provider="kind", report="other", artifact="other")

    assert saved == ["success"]
    assert [outcome for name, outcome in broke.steps if name.startswith("actions/cache/save")] == ["skipped"]


@pytest.mark.parametrize(
    ("inputs", "needs"),
    [
        ({}, f"local-{PATCH['1.37']}-driver-workload"),
        ({"provider": "kind", "driver": "none"}, f"kind-{PATCH['1.37']}-workload"),
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
def test_the_key_of_the_cache_names_what_the_run_needs_wherever_that_is_said(
    host: Host, run: Run, capfd: pytest.CaptureFixture[str], inputs: dict[str, str], needs: str
) -> None:
    host.has_testbed("pass", 0)
    (run.workspace / "t.yaml").write_text(
        "apiVersion: dra-testbed/v1alpha1\nkind: Testbed\nspec: {provider: kind, kubernetes: '1.36', kubelet: '1.35'}\n"
    )
    run.skip |= {"summary", "judge"}
    run_action(run.workspace / "ci/action", inputs, run)

    assert f"'key': 'dra-testbed-Linux-X64-{needs}-'" in capfd.readouterr().out


def test_a_run_that_broke_says_so_and_keeps_what_it_said(host: Host, run: Run) -> None:
    host.has_testbed("", 3)
    done = judged(run, provider="kind")

    assert done.failed
    assert (done.outputs["verdict"], done.outputs["exit-code"]) == ("none", "3")
    assert "## ⚠️ No verdict" in done.summary
    assert "the harness or the environment failed" in done.summary
    assert "and it says why it stops" in done.summary
    assert list(done.artifacts["dra-testbed-report"].iterdir()) == [done.artifacts["dra-testbed-report"] / "run.log"]


BROKEN_KIND = r"""
import sys
from testbed.bringup import steps
from testbed.cli.main import run
from testbed.providers import inotify

steps.STEPS = (steps.make_cluster,)  # what comes before it fetches and builds
inotify.available = lambda wanted: wanted
sys.exit(run(sys.argv[1:]))
"""


def test_a_kind_cluster_that_does_not_come_up_leaves_kinds_words_and_the_nodes_logs_in_the_artifact(
    host: Host, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(run.folder / "state"))
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
    done = judged(run, provider="kind")
    kept = done.artifacts["dra-testbed-report"]

    assert (done.outputs["verdict"], done.outputs["exit-code"]) == ("none", "3")
    assert {str(file.relative_to(kept)) for file in kept.rglob("*") if file.is_file()} == {
        "run.log", "evidence/bring-up/error.txt", "evidence/bring-up/kind.log", "evidence/bring-up/node-1.log",
        "report.yaml", "junit.xml", "events.jsonl",
    }  # fmt: skip
    assert "ERROR: port taken" in (kept / "evidence/bring-up/kind.log").read_text()
    assert f"logs: {run.workspace}/dra-testbed-report/evidence/bring-up" in (kept / "run.log").read_text()
    assert "`evidence/bring-up`" in done.summary
    assert not made.exists()


def test_without_an_installation_the_page_still_says_that_there_is_no_verdict(host: Host, run: Run) -> None:
    host.has("python3", "exit 1")
    run.failed = True
    done = judged(run)

    assert dict(done.steps)["judge"] == "skipped"
    assert "dra-testbed is not installed" in done.summary
    assert done.artifacts == {}


def test_a_folder_with_the_report_of_another_run_is_refused_and_not_shown(host: Host, run: Run) -> None:
    (run.workspace / "dra-testbed-report").mkdir()
    (run.workspace / "dra-testbed-report/events.jsonl").write_text(json.dumps(STARTED) + "\n")
    done = judged(run, provider="kind")

    assert done.failed
    assert done.outputs == {"verdict": "none", "report": "", "exit-code": "2"}
    assert "holds a report already" in done.summary
    assert "conformant" not in done.summary
    assert done.artifacts == {}


def test_every_input_becomes_words_of_the_run(host: Host, run: Run) -> None:
    host.has_testbed("pass", 0)
    judged(
        run, page=False, driver="my driver.yaml", provider="existing", kubernetes="1.36", nodes="3", config="c.yaml", kubeconfig="k",
        tier="static, wire\ne2e", arguments="-k 'a or b' --feature-gate X=true", report="r", artifact="a",
    )  # fmt: skip

    assert host.argv() == [
        "run", "--driver=my driver.yaml", "--provider=existing", "--kubernetes=1.36", "--nodes=3", "--config=c.yaml", "--kubeconfig=k",
        "--tier=static", "--tier=wire", "--tier=e2e", f"--report={run.workspace / 'r'}", "-k", "a or b", "--feature-gate", "X=true",
    ]  # fmt: skip


def test_words_of_a_user_are_never_run_by_a_shell(host: Host, run: Run) -> None:
    host.has_testbed("pass", 0)
    judged(
        run,
        page=False,
        provider="kind",
        driver='$(touch "$RUNNER_TEMP/owned"); touch owned',
        kubernetes="`touch owned`",
    )

    assert "--kubernetes=`touch owned`" in host.argv()
    assert not list(run.folder.rglob("owned"))


@pytest.mark.parametrize("provider", ["", "local"])
def test_the_local_provider_is_given_root_and_gives_back_what_root_wrote(
    host: Host, run: Run, root: Callable[[bool], None], provider: str
) -> None:
    host.has_testbed("pass", 0)
    root(False)
    done = judged(run, page=False, provider=provider)
    asked, *given_back = read(host.notes / "sudo").splitlines()

    assert done.outputs["verdict"] == "conformant"
    assert asked.startswith(f"--preserve-env --set-home env PATH={host.programs}:")
    assert given_back == [f"chown -R 1001:1001 {run.workspace / 'dra-testbed-report'}"]


def test_root_needs_no_sudo(host: Host, run: Run, root: Callable[[bool], None]) -> None:
    host.has_testbed("fail", 1)
    root(True)

    assert judged(run, page=False, provider="local").outputs["exit-code"] == "1"
    assert read(host.notes / "sudo") == ""


@pytest.mark.parametrize("provider", ["kind", "existing"])
def test_the_other_providers_need_no_root(host: Host, run: Run, root: Callable[[bool], None], provider: str) -> None:
    host.has_testbed("pass", 0)
    root(False)
    judged(run, page=False, provider=provider)

    assert read(host.notes / "sudo") == ""


@pytest.mark.parametrize(
    ("config", "arguments", "as_root"),
    [
        ("spec: {provider: existing}", "", False),
        ("spec: {provider: local}", "", True),
        ("spec: {nodes: 1}", "", True),
        ("spec:", "", True),
        ("no: mapping: of ours", "", True),
        ("", "--provider existing", False),
        ("", "-k claims --provider=kind", False),
        ("spec: {provider: existing}", "--provider local", True),
        ("spec: {provider: local}", "--provider=local --provider existing", False),
    ],
)
def test_whose_cluster_it_is_decides_about_root_wherever_that_is_said(
    host: Host, run: Run, root: Callable[[bool], None], config: str, arguments: str, as_root: bool
) -> None:
    host.has_testbed("pass", 0)
    root(False)
    (run.workspace / "my testbed.yaml").write_text(config)
    judged(run, page=False, config="my testbed.yaml" if config else "", arguments=arguments)

    assert bool(read(host.notes / "sudo")) is as_root


def test_a_config_among_the_arguments_counts_too_and_the_input_wins_over_it(
    host: Host, run: Run, root: Callable[[bool], None]
) -> None:
    host.has_testbed("pass", 0)
    root(False)
    (run.workspace / "mine.yaml").write_text("spec: {provider: local}")
    judged(run, page=False, provider="kind", arguments="--config mine.yaml")
    assert read(host.notes / "sudo") == ""

    run.steps, run.failed = [], False
    (run.workspace / "mine.yaml").write_text("spec: {provider: kind}")
    judged(run, page=False, arguments="--config mine.yaml", report="other", artifact="other")
    assert read(host.notes / "sudo") == ""


def test_as_root_ends_as_its_command_ends(host: Host, root: Callable[[bool], None], tmp_path: Path) -> None:
    root(False)

    assert process.run([ROOT / "ci/as-root", "bash", "-c", "exit 7"], check=False).code == 7


def test_an_input_that_the_action_does_not_have_is_refused(host: Host, run: Run) -> None:
    with pytest.raises(Unknown, match="drivers"):
        judged(run, drivers="x")


def test_a_job_has_the_variables_files_and_artifacts_of_github(run: Run) -> None:
    steps = [
        {"id": "one", "run": 'printf "a=1\\nb<<END\\nx\\ny\\nEND\\n" >>"$GITHUB_OUTPUT"; echo C=3 >>"$GITHUB_ENV"'},
        {"run": 'echo "$A $B $C $M $GITHUB_WORKSPACE" >>"$GITHUB_STEP_SUMMARY"; mkdir -p out/.git; touch out/file out/.hidden',
         "env": {"A": "${{ steps.one.outputs.a }}", "B": "${{ steps.one.outputs.b }}", "M": "${{ matrix.kubernetes }}"}},
        {"run": "false | true", "id": "fails"},
        {"run": "touch never"},
        {"if": "failure()", "uses": "actions/upload-artifact@x", "with": {"name": "out", "path": "out"}},
    ]  # fmt: skip
    workflow = run.workspace / ".github/workflows/other.yml"
    workflow.write_text(yaml.safe_dump({"jobs": {"one": {"steps": steps}}}))
    run.context["matrix"] = {"kubernetes": "1.36"}
    run_job("one", run)

    assert run.summary == f"1 x\ny 3 1.36 {run.workspace}\n"
    assert [outcome for _, outcome in run.steps] == ["success", "success", "failure", "skipped", "success"]
    assert [file.name for file in run.artifacts["out"].iterdir()] == ["file"]
    assert not (run.workspace / "never").exists()


def test_our_own_job_uses_the_action_as_it_lies_there(host: Host, run: Run, root: Callable[[bool], None]) -> None:
    host.has_testbed("fail", 1)
    root(True)
    run_job("action", run)

    assert host.argv()[1] == "--driver=manifests/drivers/fake-gpu.yaml"
    assert run.steps[-1] == ("./ci/action", "failure")
    assert (run.artifacts["action"] / "report.yaml").is_file()
    assert run.context["inputs"] == {}


def test_a_cache_that_is_given_lies_where_a_runner_restores_it(host: Host, run: Run, tmp_path: Path) -> None:
    host.has_testbed("pass", 0)
    run.cache = tmp_path / "programs"
    judged(run, page=False, provider="kind")

    assert (run.folder / "temp/dra-testbed/cache").resolve() == tmp_path / "programs"


def test_a_clean_copy_holds_what_git_would_and_no_more(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    for argv in (
        ["git", "init", "-q"],
        ["bash", "-c", "echo junk >.gitignore; touch junk new; mkdir a; ln -s ../new a/link"],
    ):
        process.run(argv, cwd=source)
    run_workflow.clean_copy(copy, source)

    assert sorted(str(file.relative_to(copy)) for file in copy.rglob("*") if not file.is_dir()) == [
        ".gitignore",
        "a/link",
        "new",
    ]
    assert (copy / "a/link").is_symlink()
