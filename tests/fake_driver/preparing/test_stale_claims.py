"""Claims that are still prepared though nobody may need them any more: who waits for their devices is told, and a person releases them."""

import pytest

from fake_driver.errors import ApiError, ClaimRefused
from tests.fake_driver.fake_node import Node, names


@pytest.mark.parametrize(
    ("fate", "why"),
    [
        ("deleted", "claim one does not exist any more"),
        ("replaced", "claim one was replaced by one with UID uid-new"),
        ("deallocated", "claim one is not allocated any more"),
    ],
)
def test_who_needs_a_device_that_a_lost_claim_has_is_told_what_to_do(node: Node, fate: str, why: str) -> None:
    lost = node.allocate("one", "gpu-0")
    node.driver.prepare(lost)
    meet(node, fate)
    second = node.allocate("two", "gpu-0")
    with pytest.raises(ClaimRefused, match=f"; {why}; unless the .*`dra-testbed hardware release uid-one`"):
        node.driver.prepare(second)
    assert node.driver.release("uid-one")
    assert names(node.driver.prepare(second)) == ["gpu-0"]


def meet(node: Node, fate: str) -> None:
    match fate:
        case "deleted":
            del node.api["one"]
        case "replaced":
            node.allocate("one", "gpu-1", uid="uid-new")
        case "deallocated":
            node.api["one"]["status"] = {}


def test_of_a_claim_that_is_needed_or_that_nobody_can_read_no_advice_is_given(node: Node) -> None:
    node.driver.prepare(node.allocate("one", "gpu-0"))
    second = node.allocate("two", "gpu-0")
    with pytest.raises(ClaimRefused, match=r"was not unprepared yet$"):
        node.driver.prepare(second)
    node.api["one"]["status"] = "garbage"
    with pytest.raises(ClaimRefused, match=r"was not unprepared yet$"):
        node.driver.prepare(second)


def test_a_claim_that_may_be_needed_is_released_only_by_force(node: Node) -> None:
    ref = node.allocate("one", "gpu-0")
    node.driver.prepare(ref)
    with pytest.raises(ClaimRefused, match=r"default/one \(uid-one\) exists and is allocated: end its pods"):
        node.driver.release("uid-one")
    node.trouble = ApiError("GET claim", 503, "away")
    with pytest.raises(ClaimRefused, match=r"still needed cannot be read: .*away"):
        node.driver.release("uid-one")
    assert len(node.files()) == 1
    assert node.driver.release("uid-one", force=True)
    assert node.files() == []
    assert not node.driver.release("uid-one")


@pytest.mark.parametrize("lost", ["the name", "the checkpoint"])
def test_a_claim_that_is_known_by_its_uid_alone_is_released_only_by_force(node: Node, lost: str) -> None:
    node.driver.prepare(node.allocate("one", "gpu-0"))
    (node.folder / "claims/uid-one.json").unlink()
    if lost == "the name":
        node.start()
        with pytest.raises(ClaimRefused, match=r"its name was lost with its checkpoint; .* with --force"):
            node.driver.prepare(node.allocate("two", "gpu-0"))
    with pytest.raises(ClaimRefused, match="known by its UID alone"):
        node.driver.release("uid-one")
    assert node.driver.release("uid-one", force=True)
    assert node.files() == []
