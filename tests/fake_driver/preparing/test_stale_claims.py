"""Stale claims: a refusal names them and says how to release them, and `release` refuses to release what may be needed."""

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
def test_a_refusal_advises_to_release_a_stale_claim_that_holds_the_device(node: Node, fate: str, why: str) -> None:
    stale = node.allocate("one", "gpu-0")
    node.driver.prepare(stale)
    meet(node, fate)
    second = node.allocate("two", "gpu-0")
    with pytest.raises(
        ClaimRefused, match=f"; {why}; if the kubelet .* release it: `dra-testbed hardware release uid-one`"
    ):
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


def test_a_refusal_has_no_advice_if_the_holder_is_needed_or_cannot_be_read(node: Node) -> None:
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
    with pytest.raises(ClaimRefused, match=r"default/one \(uid-one\) exists and is allocated: delete its pods"):
        node.driver.release("uid-one")
    node.error = ApiError("GET claim", 503, "away")
    with pytest.raises(ClaimRefused, match=r"cannot be read, so it may still be needed: .*away"):
        node.driver.release("uid-one")
    assert len(node.files()) == 1
    assert node.driver.release("uid-one", force=True)
    assert node.files() == []
    assert not node.driver.release("uid-one")


@pytest.mark.parametrize("lost", ["the name", "the checkpoint"])
def test_a_claim_without_a_known_name_is_released_only_by_force(node: Node, lost: str) -> None:
    node.driver.prepare(node.allocate("one", "gpu-0"))
    (node.folder / "claims/uid-one.json").unlink()
    if lost == "the name":
        node.start()
        with pytest.raises(ClaimRefused, match=r"its name was lost with its checkpoint; .* release uid-one --force`"):
            node.driver.prepare(node.allocate("two", "gpu-0"))
    with pytest.raises(ClaimRefused, match="has no known name"):
        node.driver.release("uid-one")
    assert node.driver.release("uid-one", force=True)
    assert node.files() == []
