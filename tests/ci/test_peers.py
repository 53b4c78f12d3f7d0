"""The pure parts of `tox -e peers`: differences, explanations and the page; and the folders of the peers."""

from __future__ import annotations

import re
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from configparser import ConfigParser
from pathlib import Path
from subprocess import PIPE, Popen  # noqa: TID251 - a test sends signals to a program and reads its output

import pytest

from ci.check_workflows import ROOT
from ci.peers import __main__ as peers
from ci.peers import modules, page, preparing
from ci.peers.differences import Difference, Judged, Known, counted, newest, read
from ci.peers.preparing import DRIVERS, PEERS, explanations, fingerprint, prepare, version
from testbed.binaries import peers as peers_lock
from testbed.conformance import catalogue
from testbed.drivers.install import manifests
from testbed.errors import TestbedError
from testbed.folders import data
from testbed.images.program import program
from testbed.models.driver_file import load_driver_file
from testbed.models.report import DriverConformanceReport, DriverUnderTest, Environment, Generated, RequirementReport
from testbed.models.requirement_enums import Level, Result, Tier, Verdict
from testbed.progress import Silent
from tests.ci.conftest import Host
from tests.fakes.programs import static_program


def difference(*ids: str) -> Difference:
    return Difference.model_construct(requirements=ids, whose="theirs", what="It forgets.", source="file.go")


KNOWN = Known.model_construct(about="A driver.", source="a module", differences=(difference("A-002"),))
WHERE = {"testbed": "t", "provider": "local", "kubernetes": "v1.37.1", "nodes": 2, "runtime": "c"}


def verdict(name: str, given: Verdict | None, message: str = "") -> RequirementReport:
    return RequirementReport(
        id=name, sentence="It works.", level=Level.MUST, tier=Tier.E2E, source="here", verdict=given, message=message
    )


def judged(**verdicts: Verdict | None) -> Judged:
    named = {name.replace("_", "-"): given for name, given in verdicts.items()}
    rows = {name: verdict(name, given, f"why {name}") for name, given in named.items()}
    return Judged(KNOWN, rows, Environment.model_validate(WHERE))


def report(
    at: str, *given: RequirementReport, catalogue: str = "sha256:0", where: Mapping[str, object] = WHERE
) -> DriverConformanceReport:
    return DriverConformanceReport(
        generated=Generated(at=at, suite="1", catalogue=catalogue, python="3", pytest="9"),
        subject=DriverUnderTest.model_validate({"driver": "d", "driverFile": "d", "digest": "sha256:1"}),
        environment=Environment.model_validate(where),
        result=Result.PARTIAL, finished=True, seconds=1, patience=1, statistics={}, requirements=given,
    )  # fmt: skip


def test_an_explained_failure_is_no_unexplained_difference() -> None:
    assert judged(A_001=Verdict.PASS, A_002=Verdict.FAIL).unexplained == []


@pytest.mark.parametrize("given", [Verdict.FAIL, Verdict.ERROR, Verdict.TIMEOUT, Verdict.FLAKY, Verdict.BLOCKED, None])
def test_any_other_failed_requirement_is_one(given: Verdict | None) -> None:
    assert [each.id for each in judged(A_001=given).unexplained] == ["A-001"]


@pytest.mark.parametrize("given", [Verdict.ERROR, Verdict.TIMEOUT, Verdict.FLAKY, Verdict.BLOCKED, None])
def test_an_explanation_covers_no_other_verdict_than_fail(given: Verdict | None) -> None:
    assert [each.id for each in judged(A_002=given).unexplained] == ["A-002"]


def test_an_explained_requirement_that_passes_is_outdated() -> None:
    assert judged(A_002=Verdict.PASS).outdated == ["A-002"]
    assert judged(A_002=Verdict.EXCLUDED).outdated == []


def test_reports_of_parts_are_combined_and_the_latest_verdict_counts() -> None:
    first = report("2026-01-01", verdict("A-001", Verdict.FAIL), verdict("A-002", Verdict.PASS))
    second = report("2026-01-02", verdict("A-001", Verdict.PASS), verdict("A-002", Verdict.EXCLUDED))

    assert {name: each.verdict for name, each in newest([second, first]).items()} == {
        "A-001": Verdict.PASS,
        "A-002": Verdict.PASS,
    }


def test_a_requirement_that_a_killed_run_did_not_reach_has_no_verdict() -> None:
    part = report("2026-01-01", verdict("A-001", Verdict.PASS), verdict("A-002", Verdict.EXCLUDED))
    killed = report("2026-01-02", verdict("A-001", None), verdict("A-002", None))

    assert {name: each.verdict for name, each in newest([part, killed]).items()} == {
        "A-001": Verdict.PASS,
        "A-002": None,
    }


def test_reports_about_other_requirements_are_ignored() -> None:
    old = report("2026-01-01", verdict("A-001", Verdict.PASS), catalogue="sha256:old")

    assert list(newest([old, report("2026-01-02", verdict("A-002", Verdict.PASS))])) == ["A-002"]
    assert newest([]) == {}


@pytest.mark.parametrize(
    "other", [{"kubernetes": "v1.34.2"}, {"provider": "kind"}, {"featureGates": {"DRANew": True}}, {"nodes": 1}]
)
def test_reports_about_another_cluster_are_ignored(other: dict[str, object]) -> None:
    here = report("2026-01-01", verdict("A-001", Verdict.FAIL))
    there = report("2026-01-02", verdict("A-001", Verdict.CLUSTER_UNSUPPORTED), where={**WHERE, **other})
    part = report("2026-01-03", verdict("A-002", Verdict.PASS), where={**WHERE, "testbed": "run-2"})

    assert {name: each.verdict for name, each in newest([here, there, part]).items()} == {
        "A-001": Verdict.FAIL,
        "A-002": Verdict.PASS,
    }


def test_the_page_names_the_cluster() -> None:
    gates = {"DRANew": True, "DRAOld": False}
    where = Environment.model_validate({**WHERE, "featureGates": gates})

    text = page.render({"a-driver": ("1.0", Judged(KNOWN, judged(A_001=Verdict.PASS).verdicts, where))})

    assert "Judged on Kubernetes v1.37.1, provider local, DRANew=true, DRAOld=false.\n" in text


def test_the_page_counts_verdicts_and_lists_every_difference_with_its_source() -> None:
    seen = judged(A_001=Verdict.PASS, A_002=Verdict.FAIL, A_003=Verdict.TIMEOUT, A_004=Verdict.NOT_APPLICABLE)
    text = page.render({"a-driver": ("1.0", seen)})

    assert counted(seen.verdicts.values()) == [("pass", 1), ("fail", 1), ("timeout", 1), ("not-applicable", 1)]
    assert "| fail | 1 |" in text
    assert "**A-002** (theirs). It forgets.\n\nSource: file.go" in text
    assert "**A-003** (timeout, not explained yet). It works. Message: why A-003" in text
    assert "* 1: why A-004" in text


def test_the_page_names_explained_requirements_that_did_not_fail() -> None:
    both = Known.model_construct(
        about="", source="", differences=(difference("A-001", "A-002", "A-003"), difference("A-004"))
    )
    seen = judged(A_001=Verdict.FAIL, A_002=None, A_004=Verdict.FAIL)

    text = page.render({"a-driver": ("1.0", Judged(both, seen.verdicts))})

    assert "**A-001, A-002, A-003** (theirs). It forgets. Did not fail in these runs: A-002, A-003.\n\nSource:" in text
    assert "**A-004** (theirs). It forgets.\n\nSource:" in text


def test_the_page_says_why_requirements_were_not_judged() -> None:
    rows = judged(A_001=None, A_002=None, A_003=Verdict.EXCLUDED, A_004=Verdict.CLUSTER_UNSUPPORTED).verdicts

    text = page.render({"a-driver": ("1.0", Judged(KNOWN, rows))})

    assert "* 2: the run ended before there was a verdict\n* 1: why A-003\n* 1: why A-004\n" in text


def test_an_unexplained_difference_is_printed_and_gives_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    peer = next(iter(PEERS))

    assert peers.summarize(peer, judged(A_002=Verdict.FAIL)) == 0
    assert peers.summarize(peer, judged(A_001=Verdict.FAIL)) == 1
    assert "A-001: fail, not explained: why A-001" in capsys.readouterr().out


@pytest.mark.parametrize(
    "nothing", [{}, {"A_001": Verdict.EXCLUDED, "A_002": Verdict.NOT_APPLICABLE, "A_003": Verdict.CLUSTER_UNSUPPORTED}]
)
def test_the_exit_code_is_1_if_nothing_was_judged(
    nothing: dict[str, Verdict], capsys: pytest.CaptureFixture[str]
) -> None:
    assert peers.summarize(next(iter(PEERS)), judged(**nothing)) == 1
    assert "nothing was judged" in capsys.readouterr().out


def program_of(folder: Path) -> Path:
    """Create a program in a folder, and return its path."""
    folder.mkdir(exist_ok=True)
    (folder / "program").write_bytes(static_program())
    return folder / "program"


def module(folder: Path) -> None:
    """Create the folder of a module with the files that peers take from theirs, which are read-only."""
    for name in ("install.yaml", "manifests/base/daemonset.yaml", "deployment/helm/dra-driver-cpu/Chart.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: driver}\n")
        (folder / name).chmod(0o400)
        (folder / name).parent.chmod(0o700 if (folder / name).parent == folder else 0o500)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Prepare the folder of a peer, with an image of a program that is no driver."""
    monkeypatch.setenv("DRA_TESTBED_CACHE", str(tmp_path / "cache"))

    def built(_lock: object, names: list[str], **_how: object) -> dict[str, Path]:
        return {name: program_of(tmp_path / name) for name in names}

    monkeypatch.setattr("ci.peers.preparing.ensure", built)
    monkeypatch.setattr(
        "ci.peers.python_image.image", lambda *_: program("localhost/x", program_of(tmp_path), Silent())
    )
    monkeypatch.setattr("ci.peers.modules.folder", lambda *_: tmp_path / "module")
    module(tmp_path / "module")
    return lambda peer: prepare(peer, tmp_path / "work", Silent())


@pytest.mark.parametrize("peer", PEERS)
def test_the_folder_of_a_peer_has_a_valid_driver_file(peer: str, prepared: Callable[[str], Path]) -> None:
    driver_file = load_driver_file(prepared(peer))

    assert driver_file.name == peer
    assert driver_file.install
    assert driver_file.install.images


@pytest.mark.parametrize("peer", ["dra-test-driver", "dra-example-driver"])
def test_our_manifests_of_a_peer_use_its_image(peer: str, prepared: Callable[[str], Path]) -> None:
    driver_file = load_driver_file(prepared(peer))
    objects = manifests(driver_file)
    (daemon,) = (each for each in objects if each["kind"] == "DaemonSet")

    assert {each["kind"] for each in objects} > {"DaemonSet", "DeviceClass", "ClusterRole"}
    assert daemon["spec"]["template"]["spec"]["containers"][0]["image"] == PEERS[peer].image
    assert driver_file.pods.container == daemon["spec"]["template"]["spec"]["containers"][0]["name"]


def test_files_of_the_module_of_a_peer_are_copied_and_can_be_removed_again(prepared: Callable[[str], Path]) -> None:
    chart = prepared("dra-driver-cpu-individual").parent / "chart"

    assert stat.S_IMODE(chart.stat().st_mode) == 0o755
    assert (chart / "Chart.yaml").stat().st_mode & stat.S_IWUSR


@pytest.mark.parametrize("peer", [name for name, each in PEERS.items() if each.files])
def test_the_locked_module_of_a_peer_contains_its_program(peer: str) -> None:
    locked = peers_lock().program(PEERS[peer].program)
    requirements = (locked.upstream.module_folder / "go.mod").read_text()

    assert locked.package.startswith(f"{modules.module_path(locked)}/")
    assert f"{modules.module_path(locked)} v{locked.version}" in requirements


def test_a_peer_that_needs_another_runtime_gets_its_folder(prepared: Callable[[str], Path], tmp_path: Path) -> None:
    prepared("dranet")

    assert preparing.options("kubernetes-pydra", Silent()) == [f"--binaries-from={tmp_path / 'runc-1.4'}", "--nodes=1"]
    assert preparing.options("dranet", Silent()) == []


def test_every_wheel_of_a_peer_is_locked_with_its_hashes() -> None:
    lines = [line for line in preparing.wheels_of("kubernetes-pydra").read_text().splitlines() if line[:1] != "#"]
    pin, digest = r"[a-z][\w.-]*==[\w.]+ \\", r"    --hash=sha256:[0-9a-f]{64}( \\)?"

    assert [line for line in lines if not re.fullmatch(f"{pin}|{digest}", line)] == []


@pytest.mark.parametrize("file", ["dra-test-driver.yaml", "rights.yaml", "daemonset.yaml"])
def test_the_fingerprint_of_a_peer_covers_its_manifests_and_version(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = next(iter(PEERS))
    shutil.copytree(DRIVERS / peer, tmp_path / peer)
    monkeypatch.setattr(preparing, "DRIVERS", tmp_path)
    before = fingerprint(peer)

    with (tmp_path / peer / file).open("a") as theirs:
        theirs.write("# changed")
    changed = fingerprint(peer)
    monkeypatch.setattr(preparing, "version", lambda _: "99.0")
    assert len({before, changed, fingerprint(peer)}) == 3


def test_reports_about_another_fingerprint_are_ignored(
    host: Host, prepared: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.has_testbed("fail", 1)
    peer = next(iter(PEERS))
    work = tmp_path / "work"
    peers.run(peer, work, [])
    assert list(peers.judge(peer, work).verdicts) == ["T-001"]

    monkeypatch.setattr(peers, "fingerprint", lambda _: "99.0-0")
    assert peers.judge(peer, work).verdicts == {}


@pytest.mark.parametrize("peer", PEERS)
def test_explanations_are_about_the_locked_version(peer: str) -> None:
    assert f"v{version(peer)}" in read(explanations(peer)).source


@pytest.mark.parametrize("peer", PEERS)
def test_every_requirement_is_explained_once_at_most_and_exists(peer: str) -> None:
    named = [name for each in read(explanations(peer)).differences for name in each.requirements]
    every = {entry.requirement.id for entry in catalogue.read([data("suites")]).entries}

    assert set(named) <= every
    assert len(named) == len(set(named))


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1)])
def test_a_run_writes_reports_and_the_page_is_generated_from_them(
    host: Host,
    prepared: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdict: str,
    code: int,
) -> None:
    monkeypatch.setattr(peers, "PAGE", tmp_path / "peers.md")
    host.has_testbed(verdict, code)

    assert peers.main(["--work", str(tmp_path / "work"), "--profile", "full"]) == code
    assert host.argv()[0] == "run"
    assert host.argv()[-2:] == ["--profile", "full"]
    assert not (tmp_path / "peers.md").exists()

    assert peers.main(["--write", "--work", str(tmp_path / "work")]) == code
    assert (tmp_path / "peers.md").read_text().count(f"| {verdict} | 1 |") == len(PEERS)


def test_the_page_is_not_written_if_a_peer_has_no_reports(
    host: Host, prepared: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(peers, "PAGE", tmp_path / "peers.md")
    (tmp_path / "peers.md").write_text("as before")
    host.has_testbed("pass", 0)
    one, *others = PEERS

    assert peers.main(["--peer", one, "--work", str(tmp_path / "work")]) == 0
    assert peers.main(["--write", "--work", str(tmp_path / "work")]) == 2
    assert (tmp_path / "peers.md").read_text() == "as before"
    assert (
        f"there are no reports of {', '.join(others)}; peers.md is unchanged\n  try: tox -e peers"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("words", [["--plan"], ["--report", "there"], ["--report=there"], ["--driver=fake-gpu"]])
def test_options_that_select_another_driver_or_report_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        peers.arguments(["--profile", "full", *words])

    assert refused.value.code == 2
    assert f"{words[0].partition('=')[0]} can't be used for peers: " in capsys.readouterr().err


def test_a_broken_testbed_gives_exit_code_3(host: Host, prepared: Callable[[str], Path], tmp_path: Path) -> None:
    host.has_testbed("", 3)

    assert peers.main(["--work", str(tmp_path / "work")]) == 3


def test_a_failed_build_gives_the_exit_code_of_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> Path:
        raise TestbedError("no Go", hint="install it")

    monkeypatch.setattr(peers, "prepare", broken)

    assert peers.main(["--work", str(tmp_path)]) == 3
    assert capsys.readouterr().err == "error: no Go\n  try: install it\n"


MAIN = f"""
import runpy, signal, sys
from pathlib import Path
from ci.peers import preparing
preparing.prepare = lambda *_: Path("driver.yaml")
preparing.options = lambda *_: []
for each in {[*map(int, peers.STOPS)]}: signal.signal(each, signal.SIG_DFL)
runpy.run_module("ci.peers", run_name="__main__", alter_sys=True)
"""
EXITS_LIKE_A_VERDICT = """
trap 'kill $!; echo going; sleep 0.3; touch gone; exit 1' INT TERM
sleep 5 &
echo up
wait"""


@pytest.mark.parametrize("number", peers.STOPS)
def test_an_interrupt_waits_for_the_removal_of_the_testbed_and_starts_no_other(
    host: Host, tmp_path: Path, number: signal.Signals
) -> None:
    host.has("dra-testbed", EXITS_LIKE_A_VERDICT)

    argv = [sys.executable, "-c", MAIN, "--work", str(tmp_path)]
    with Popen(argv, cwd=host.notes, stdout=PIPE, text=True) as judging:
        assert judging.stdout
        assert judging.stdout.readline() == "up\n"
        judging.send_signal(number)
        assert judging.stdout.readline() == "going\n"
        judging.send_signal(number)  # tox does
        assert judging.wait(10) == 128 + number
        assert (host.notes / "gone").exists()
        assert judging.stdout.read() == ""


def test_tox_waits_until_a_testbed_is_removed() -> None:
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")

    assert tox.getfloat("testenv", "interrupt_timeout") >= 60


def test_a_killed_run_is_no_success(host: Host, tmp_path: Path) -> None:
    host.has_testbed("pass", 0)
    peer = next(iter(PEERS))
    folder = tmp_path / "reports" / peer / fingerprint(peer) / "core"
    folder.mkdir(parents=True)
    lines = (host.programs.parent / "made/events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("\n".join(lines[:2]) + "\n")

    assert [(name, each.verdict) for name, each in peers.judge(peer, tmp_path).verdicts.items()] == [("T-001", None)]
    assert peers.summarize(peer, peers.judge(peer, tmp_path)) == 1
