from fake_driver.api.backoff import Backoff


def test_delays_grow_up_to_the_maximum_and_start_again_after_a_quiet_time() -> None:
    now = [0.0]
    backoff = Backoff(0.1, 1.0, reset_after=30, clock=lambda: now[0])
    waits = [backoff.next_delay() for _ in range(6)]
    assert waits[0] <= 0.1 < waits[2] < waits[4] <= 1.0
    assert max(waits) <= 1.0
    now[0] = 60
    assert backoff.next_delay() <= 0.1
