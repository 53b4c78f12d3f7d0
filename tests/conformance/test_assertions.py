from __future__ import annotations

import sys

from testbed import process
from testbed.conformance.assertions import require_assertions

_JUDGE = "from testbed.conformance.assertions import require_assertions; require_assertions()"


def test_a_python_that_ignores_assertions_is_refused() -> None:
    require_assertions()
    refused = process.run([sys.executable, "-O", "-c", _JUDGE], check=False)
    assert "this Python ignores assertions (python -O or PYTHONOPTIMIZE)" in refused.stderr
