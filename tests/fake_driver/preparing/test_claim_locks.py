import threading
from concurrent.futures import ThreadPoolExecutor

from fake_driver.preparing.claim_locks import ClaimLocks


def test_calls_for_one_claim_run_one_after_the_other() -> None:
    locks, inside, most = ClaimLocks(), [0], [0]

    def work(_: int) -> None:
        with locks.hold("same"):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            threading.Event().wait(0.001)
            inside[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert most == [1]


def test_calls_for_different_claims_run_concurrently() -> None:
    locks, meeting = ClaimLocks(), threading.Barrier(2)

    def work(uid: str) -> None:
        with locks.hold(uid):
            meeting.wait(5)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["a", "b"]))


def test_locks_that_no_thread_holds_are_removed() -> None:
    locks = ClaimLocks()
    with locks.hold("a"):
        assert list(locks._locks) == ["a"]
    assert locks._locks == {}
