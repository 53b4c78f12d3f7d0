from fake_driver.api.backoff import Backoff


def test_repairs_that_follow_on_each_other_get_slower_and_calm_forgives() -> None:
    now = [0.0]
    pace = Backoff(0.1, 1.0, calm=30, clock=lambda: now[0])
    waits = [pace.next_delay() for _ in range(6)]
    assert waits[0] <= 0.1 < waits[2] < waits[4] <= 1.0
    assert max(waits) <= 1.0
    now[0] = 60
    assert pace.next_delay() <= 0.1
