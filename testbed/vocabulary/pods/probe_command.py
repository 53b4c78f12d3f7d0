"""The command of a probe as containers run it: with a program of theirs, which also runs if the probe's program is missing. Pure.

Used for probes that run in a running container, and for manifests whose container is the probe.
"""

from __future__ import annotations

from collections.abc import Sequence

# Exit codes of a shell for a program that it could not start. All others are answers of the program.
NOT_STARTED = (126, 127)
# The container of a pod must not fail because of an answer, so that the pod succeeds and its log is judged.
_ANSWER = '"$@"; code=$?; case $code in 12[67]) exit $code;; esac'


_VARIABLES = ["env"]


def in_container(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command for a running container. Its exit code is that of the probe.

    It is no shell, because the shell of busybox drops variables such as DEVICE_my-claim, whose names are none in a shell.
    """
    return ("env", *argv)


def as_container(argv: Sequence[str]) -> list[str]:
    """Return the command for a manifest. It fails only if the probe could not be started.

    Kubernetes expands $ in the command of a container, so each is doubled. `env` needs no shell, and would lose variables in one.
    """
    if list(argv) == _VARIABLES:
        return _VARIABLES
    return [word.replace("$", "$$") for word in ("sh", "-c", _ANSWER, "sh", *argv)]
