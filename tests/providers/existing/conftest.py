"""Fixtures that make waits time out at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.waiting import set_patience


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    set_patience(0.001)
    yield
    set_patience(1.0)
