"""What a container has is read from the output of one command, and compared with a container without a claim."""

from __future__ import annotations

from testbed.onboarding.checks.contents import COMMAND, Contents, read
from testbed.process import run

_PRINTED = "\x1e".join(
    (
        "PATH=/bin\nHOSTNAME=with-0\nGPU=0\x01line 2\n",
        "/\n/opt/acme\n/run/kubernetes.io/dra-device-attributes/a/b\n",
        "/dev/null\n/dev/acme0\n",
        "lo\nnet1\n",
        "Cpus_allowed_list:\t1\nMems_allowed_list:\t0\n",
    )
)


def test_all_that_a_claim_may_change_is_read() -> None:
    found = read(_PRINTED)
    assert found.variables == {"PATH": "/bin", "GPU": "0\nline 2"}
    assert found.device_nodes == {"/dev/null", "/dev/acme0"}
    assert found.interfaces == {"lo", "net1"}
    assert "secret" not in repr(Contents({"TOKEN": "secret"}))


def test_mounts_of_device_metadata_are_no_addition() -> None:
    assert read(_PRINTED).mounts == {"/", "/opt/acme"}


def test_additions_are_named_by_kind_without_values() -> None:
    plain = read(_PRINTED.replace("GPU=0\x01line 2\n", "").replace("/opt/acme\n", "").replace(":\t1", ":\t0-1"))
    assert read(_PRINTED).additions_to(plain) == (
        "environment variable GPU",
        "mount /opt/acme",
        "other Cpus_allowed_list: 1",
    )


def test_many_additions_are_shortened() -> None:
    found = Contents({f"GPU_{number}": "x" for number in range(5)}).additions_to(Contents())
    assert found == ("environment variables GPU_0, GPU_1, GPU_2 and 2 more",)


def test_the_command_prints_what_is_read() -> None:
    done = run(COMMAND, env={"MINE": "1"}, check=False)
    found = read(done.stdout)
    assert found.variables["MINE"] == "1"
    assert "/dev/null" in found.device_nodes
    assert "/" in found.mounts
    assert any(each.startswith("Cpus_allowed_list") for each in found.cpus)
