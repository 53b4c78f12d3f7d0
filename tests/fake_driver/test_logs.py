import json
import logging
import sys

import pytest

from fake_driver.logs import LineFormatter


def line(line_format: str, message: str = "prepare", **facts: object) -> str:
    record = logging.LogRecord("fake_driver.kubelet.dra_service", logging.INFO, "x.py", 1, message, (), None)
    record.facts = facts
    record.created = 1000.25
    return LineFormatter(line_format, {"driver": "gpu.example", "node": ""}).format(record)


def test_logfmt_quotes_values_that_are_not_a_single_word() -> None:
    assert line("logfmt", "stopping now", uid="a-1", devices=["gpu-0"], error='no "x"\nat all', seconds=0.5) == (
        'time=1970-01-01T00:16:40.250Z level=info logger=fake_driver.kubelet.dra_service message="stopping now" driver=gpu.example '
        'uid=a-1 devices="[\\"gpu-0\\"]" error="no \\"x\\"\\nat all" seconds=0.5'
    )


def test_json_has_the_same_keys() -> None:
    assert json.loads(line("json", uid="a-1", seconds=0.5)) == {
        "time": "1970-01-01T00:16:40.250Z",
        "level": "info",
        "logger": "fake_driver.kubelet.dra_service",
        "message": "prepare",
        "driver": "gpu.example",
        "uid": "a-1",
        "seconds": 0.5,
    }


@pytest.mark.parametrize("line_format", ["logfmt", "json"])
def test_no_token_reaches_the_log(line_format: str) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    text = line(line_format, f"refused: {token}", error=f"Authorization: Bearer {token}", other="Bearer opaque-text")
    assert "eyJ" not in text
    assert "opaque-text" not in text
    assert text.count("[secret]") == 3


@pytest.mark.parametrize("line_format", ["logfmt", "json"])
def test_an_exception_is_a_single_line(line_format: str) -> None:
    try:
        int("bad")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed", (), sys.exc_info())
    text = LineFormatter(line_format, {}).format(record)
    assert "ValueError: invalid literal" in text
    assert "\n" not in text
