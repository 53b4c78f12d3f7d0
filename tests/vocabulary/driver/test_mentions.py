from __future__ import annotations

import pytest

from testbed.vocabulary.driver.mentions import mentioned


@pytest.mark.parametrize(
    "text",
    [
        "GPU-1",
        "GPU-1:",
        "GPU-1: ready",
        "GPU-1:ready",
        "GPU-1.",
        "GPU-1. It is ready",
        "(GPU-1)",
        "uuid=GPU-1",
        "uuid:GPU-1",
        "node-1/GPU-1",
        "GPU-0,GPU-1;",
        "'GPU-1'",
        "{'uuid': 'GPU-1', 'index': 1}",
        "GPU-10 GPU-1",
        "no GPU-1!",
        "<GPU-1>",
        "GPU-1\n",
        "line\nGPU-1",
    ],
)
def test_an_identity_is_found_with_any_punctuation(text: str) -> None:
    assert mentioned(["GPU-1"], text) == {"GPU-1"}


@pytest.mark.parametrize(
    "text", ["", "GPU-10", "GPU-1-part-0", "GPU-1.5", "GPU-1_a", "xGPU-1", "MIG-GPU-1", "a.GPU-1", "gpu-1"]
)
def test_a_part_of_a_longer_name_is_no_identity(text: str) -> None:
    assert mentioned(["GPU-1"], text) == frozenset()


def test_colons_join_the_parts_of_identities_that_have_some() -> None:
    address = "02:00:5e:10:00:01"
    assert mentioned([address], f"mac={address}: up") == {address}
    assert mentioned([address], f"{address}:02 aa:{address}") == frozenset()
    assert mentioned(["0000:01:00.0", "0000:01:00.1"], "function 0000:01:00.1.") == {"0000:01:00.1"}


def test_only_the_named_identities_are_returned() -> None:
    assert mentioned(["GPU-1", "GPU-2", ""], "GPU-2 replaces GPU-3") == {"GPU-2"}
