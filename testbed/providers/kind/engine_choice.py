"""Which container engine kind would use here, whether it is one of this host, and whether it answers. For the provider."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

from testbed import process
from testbed.errors import CommandFailed
from testbed.providers.base import Problem
from testbed.providers.kind.engine import CHOICE, DECIDING, Engine, last_line

_CHOOSABLE = ("docker", "nerdctl", "nerdctl.lima", "finch", "podman")  # other words kind ignores
# In the order in which kind looks; podman-docker is a `docker` that says it is Podman.
_DETECTED = (
    ("docker", "Docker version"),
    ("nerdctl", "nerdctl version"),
    ("finch", "finch version"),
    ("podman", "podman version"),
)


def chosen(environment: Mapping[str, str] = os.environ) -> Engine:
    """The engine that kind would use here."""
    variables = {name: environment[name] for name in DECIDING if environment.get(name)}
    return Engine(_program(environment.get(CHOICE, "")), variables)


def problems(engine: Engine) -> list[Problem]:
    """Why the engine cannot make nodes here, if so."""
    if not shutil.which(engine.program):
        names = ", ".join(name for name, _ in _DETECTED)
        return [Problem(f"kind needs a container engine, and {names} are not here", "install Docker, or Podman")]
    if remote := _remote(engine):
        what = f"the engine of {engine.program} is at {remote}, on another host: nodes would see the folders of that one, and serve there"
        return [Problem(what, "use an engine of this host: unset DOCKER_HOST and DOCKER_CONTEXT (CONTAINER_HOST)")]
    try:
        engine.run("info", "--format", "{{json .}}", timeout=30)
    except CommandFailed as refused:
        return [_refused(engine, refused)]
    return []


def _program(said: str) -> str:
    if said in _CHOOSABLE:
        return said
    return next((name for name, words in _DETECTED if _calls_itself(name, words)), "docker")


def _calls_itself(program: str, words: str) -> bool:
    if not shutil.which(program):
        return False
    try:
        said = process.run([program, "-v"], timeout=20).stdout.splitlines()
    except CommandFailed:
        return False
    return len(said) == 1 and said[0].startswith(words)


def _remote(engine: Engine) -> str:
    """Where the engine is, if that is no socket of this host."""
    endpoint = engine.variables.get("CONTAINER_HOST", "") if engine.is_podman else ""
    if engine.program == "docker":
        said = engine.run("context", "inspect", "--format", "{{.Endpoints.docker.Host}}", check=False)
        endpoint = said.stdout.strip() if said.ok else engine.variables.get("DOCKER_HOST", "")
    scheme = re.match(r"(\w+)://", endpoint)
    return endpoint if scheme and scheme[1] not in ("unix", "npipe") else ""


def _refused(engine: Engine, refused: CommandFailed) -> Problem:
    last = last_line(refused)
    if "permission denied" in refused.output.lower():
        cure = f"let this user use {engine.program} (group docker), or run as root"
        return Problem(f"{engine.program} is there, but this user may not use it: {last}", cure)
    cure = f"start {engine.program}; where it listens elsewhere, set DOCKER_HOST"
    return Problem(f"{engine.program} is there, but its engine does not answer: {last}", cure)
