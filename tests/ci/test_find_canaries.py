from __future__ import annotations

import base64
import secrets
from pathlib import Path

from ci import find_canaries


def test_a_canary_is_found_in_any_file(tmp_path: Path) -> None:
    canary = secrets.token_hex(12)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence/clean").write_text("GPU=1")
    assert find_canaries.main([str(tmp_path), canary]) == 0
    (tmp_path / "evidence/log").write_bytes(b"\xff" + canary.encode())
    (tmp_path / "report.yaml").write_bytes(base64.b64encode(canary.encode()))
    assert list(find_canaries.find(tmp_path, [canary])) == [tmp_path / "evidence/log", tmp_path / "report.yaml"]
    assert find_canaries.main([str(tmp_path), canary]) == 1


def test_an_empty_folder_is_not_clean(tmp_path: Path) -> None:
    assert find_canaries.main([str(tmp_path), "canary"]) == 2
    assert find_canaries.main([]) == 2
