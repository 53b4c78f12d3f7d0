"""Determines which container engine kind would use, whether it runs on this host, and whether it answers. For the provider."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

from testbed import process
from testbed.errors import CommandFailed
from testbed.providers.base import HostProblem
from testbed.providers.kind.engine import CHOICE, SELECTING, Engine, last_line

_CHOOSABLE = ("docker", "nerdctl", "nerdctl.lima", "finch", "podman")  # kind ignores other values
# In kind's order. podman-docker is a program `docker` that reports to be Podman.
_DETECTED = (
    ("docker", "Docker version"),
    ("nerdctl", "nerdctl version"),
    ("finch", "finch version"),
    ("podman", "podman version"),
)


def choose(environment: Mapping[str, str] = os.environ) -> Engine:
    """Return the engine that kind would use."""
    variables = {name: environment[name] for name in SELECTING if environment.get(name)}
    return Engine(_program(environment.get(CHOICE, "")), variables)


def problems(engine: Engine) -> list[HostProblem]:
    """Return why the engine cannot run nodes on this host; an empty list if it can."""
    if not shutil.which(engine.program):
        names = ", ".join(name for name, _ in _DETECTED)
        return [HostProblem(f"kind needs a container engine, but none is on PATH: {names}", "install Docker or Podman")]
    if remote := _remote(engine):
        what = f"the engine of {engine.program} is on another host, {remote}: nodes could not mount this host's folders"
        return [HostProblem(what, "use an engine on this host: unset DOCKER_HOST and DOCKER_CONTEXT (CONTAINER_HOST)")]
    try:
        engine.run("info", "--format", "{{json .}}", timeout=30)
    except CommandFailed as refused:
        return [_refused(engine, refused)]
    return []


def _program(given: str) -> str:
    if given in _CHOOSABLE:
        return given
    return next((name for name, prefix in _DETECTED if _has_version(name, prefix)), "docker")


def _has_version(program: str, prefix: str) -> bool:
    if not shutil.which(program):
        return False
    try:
        lines = process.run([program, "-v"], timeout=20).stdout.splitlines()
    except CommandFailed:
        return False
    return len(lines) == 1 and lines[0].startswith(prefix)


def _remote(engine: Engine) -> str:
    """Return the engine's endpoint if it is not a socket of this host; otherwise ''."""
    endpoint = engine.variables.get("CONTAINER_HOST", "") if engine.is_podman else ""
    if engine.program == "docker":
        shown = engine.run("context", "inspect", "--format", "{{.Endpoints.docker.Host}}", check=False)
        endpoint = shown.stdout.strip() if shown.ok else engine.variables.get("DOCKER_HOST", "")
    scheme = re.match(r"(\w+)://", endpoint)
    return endpoint if scheme and scheme[1] not in ("unix", "npipe") else ""


def _refused(engine: Engine, refused: CommandFailed) -> HostProblem:
    last = last_line(refused)
    if "permission denied" in refused.output.lower():
        cure = f"let this user use {engine.program} (group docker), or run as root"
        return HostProblem(f"{engine.program} is installed, but this user may not use its engine: {last}", cure)
    cure = f"start {engine.program}; if its socket is not the default one, set DOCKER_HOST"
    return HostProblem(f"{engine.program} is installed, but its engine does not answer: {last}", cure)
