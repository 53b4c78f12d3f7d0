"""The command as a whole: fast help, lazy imports, exit codes."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from pathlib import Path

import click
import pytest

from testbed import __version__, process
from testbed.cli import entry
from testbed.cli.main import COMMANDS, run
from testbed.waiting import Budget, eventually_true

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def python(code: str) -> process.Completed:
    return process.run([sys.executable, "-c", code], env=ENVIRONMENT, check=False)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["status", "demo"], "dra-testbed status --name demo"),
        (["down", "demo"], "dra-testbed down --name demo"),
        (["explain", "CLAIM-001", "CLAIM-002"], "dra-testbed explain --help"),
        (
            ["run", "--known", "known.yaml"],
            "--known takes no file: leave out known.yaml; the list is spec.known of the driver file",
        ),
    ],
)
def test_a_name_that_is_given_as_an_argument_is_shown_with_its_option(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert f"try: {hint}\n" in capsys.readouterr().err


def test_the_requirements_of_a_profile_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--profile", "smoke", "-o", "json"]) == 0
    smoke = {each["id"] for each in json.loads(capsys.readouterr().out)}
    assert run(["list", "-o", "json"]) == 0
    every = {each["id"] for each in json.loads(capsys.readouterr().out)}
    assert "REG-001" in smoke < every
    assert run(["list", "--profile", "smok"]) == 2
    assert "did you mean smoke?" in capsys.readouterr().err


def test_help_lists_every_command_and_imports_none_of_the_heavy_ones() -> None:
    said = python(
        "import sys; from testbed.cli.main import run; code = run(['--help'])\n"
        "heavy = {'kubernetes', 'grpc', 'pytest', 'pydantic', 'rich', 'yaml', 'testbed.bringup'} & set(sys.modules)\n"
        "assert code == 0 and not heavy, heavy"
    )

    assert said.ok, said.stderr
    for name in COMMANDS:
        assert f"\n  {name} " in said.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_exists_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, attribute, _ = COMMANDS[name]

    assert isinstance(getattr(importlib.import_module(module), attribute), click.Command)
    assert run([name, "--help"]) == 0
    assert f"Usage: dra-testbed {name}" in capsys.readouterr().out


def test_without_arguments_it_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "Usage: dra-testbed" in capsys.readouterr().out


def test_the_help_and_the_readme_name_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"])
    readme = (Path(__file__).parents[2] / "README.md").read_text().partition("The exit code says")[2].partition(". ")[0]
    for said in (capsys.readouterr().out.partition("Exit codes: ")[2], readme):
        assert re.findall(r"\b\d+(?= [a-z])", " ".join(said.split())) == ["0", "1", "2", "3", "4", "129", "130", "143"]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"dra-testbed, version {__version__}\n"


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (["statsu"], "error: there is no command statsu", "did you mean status?"),
        (["zzz"], "error: there is no command zzz", "dra-testbed --help"),
        (["--debugg"], "error: No such option", "dra-testbed --help"),
        (["up", "--nodez", "3"], "error: No such option", "dra-testbed up --help"),
        (["up", "--nodes", "two"], "error: Invalid value for '--nodes'", "dra-testbed up --help"),
        (["up", "--nodes", "0"], "error: --nodes: is 0, but must be 1 or more", ""),
        (["up", "--name", "../x"], "error: --name is '../x', which is a path", "lower-case"),
        (["up", "--feature-gate", "DRA"], "error: --feature-gate 'DRA' is not of the form", ""),
        (["up", "--config", "gone.yaml"], "error: cannot read gone.yaml: No such file", ""),
    ],
)
def test_wrong_usage_has_a_hint_and_exit_code_2(
    words: list[str], error: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(error)
    assert hint in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("name", ["..", "../x", ".locks", "", "/", "~", "x/../.."])
@pytest.mark.parametrize("words", [["down"], ["status"], ["logs"]])
def test_a_name_cannot_leave_the_state_folder(
    words: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRA_TESTBED_STATE", str(tmp_path / "outer/state"))
    (tmp_path / "outer/state").mkdir(parents=True)

    code = run([*words, "--name", name])

    assert code == 2 or (words == ["status"] and name == "")
    assert (tmp_path / "outer/state").is_dir()


def test_similar_options_are_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    run(["up", "--nodez", "3"])

    assert "--nodes" in capsys.readouterr().err


def test_main_exits_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["dra-testbed", "nope"])

    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 2


def test_ctrl_c_during_imports_ends_quietly() -> None:
    said = python(
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from testbed.cli.entry import main; main()"
    )

    assert (said.code, said.stderr) == (130, "")


def test_a_closed_reader_is_not_an_error(tmp_path: Path) -> None:
    script = f'{sys.executable} -m testbed.cli.main binaries list -o json | head -c 1; echo "${{PIPESTATUS[0]}}" >&2'

    done = process.run(["bash", "-c", script], env=ENVIRONMENT)

    # The exit code depends on how much was written before the reader closed the pipe; there is never a traceback.
    assert done.stderr in ("0\n", "141\n")


def test_sigterm_runs_every_finally(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import sys, threading\n"
        "from testbed.cli.exit_codes import exit_code_of\n"
        "def work():\n"
        "    try:\n"
        "        print('up', flush=True); threading.Event().wait(60)\n"
        "    finally:\n"
        "        print('cleaned', flush=True)\n"
        "sys.exit(exit_code_of(work))"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    child = process.start(
        ["sh", "-c", f"{sys.executable} {script} & echo pid $!; wait $!; echo code $?"], log=log, env=ENVIRONMENT
    )
    soon = Budget("soon", 20, "Python starts or ends")
    assert eventually_true(lambda: "up" in log.read_text(), soon)

    os.kill(int(log.read_text().split()[1]), signal.SIGTERM)

    assert eventually_true(lambda: not process.alive(child), soon)
    assert log.read_text().split("\n")[1:-1] == ["up", "cleaned", "stopped by SIGTERM", "code 143"]
