import json
import logging
import sys

import pytest

from fake_driver.logs import LineFormatter


def line(shape: str, message: str = "prepare", **facts: object) -> str:
    record = logging.LogRecord("fake_driver.kubelet.dra_service", logging.INFO, "x.py", 1, message, (), None)
    record.facts = facts
    record.created = 1000.25
    return LineFormatter(shape, {"driver": "gpu.example", "node": ""}).format(record)


def test_logfmt_quotes_what_is_more_than_a_word() -> None:
    assert line("logfmt", "told to stop", uid="a-1", devices=["gpu-0"], error='no "x"\nat all', seconds=0.5) == (
        'time=1970-01-01T00:16:40.250Z level=info logger=fake_driver.kubelet.dra_service message="told to stop" driver=gpu.example '
        'uid=a-1 devices="[\\"gpu-0\\"]" error="no \\"x\\"\\nat all" seconds=0.5'
    )


def test_json_has_the_same_words() -> None:
    assert json.loads(line("json", uid="a-1", seconds=0.5)) == {
        "time": "1970-01-01T00:16:40.250Z",
        "level": "info",
        "logger": "fake_driver.kubelet.dra_service",
        "message": "prepare",
        "driver": "gpu.example",
        "uid": "a-1",
        "seconds": 0.5,
    }


@pytest.mark.parametrize("shape", ["logfmt", "json"])
def test_no_token_reaches_the_log(shape: str) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    said = line(shape, f"refused: {token}", error=f"Authorization: Bearer {token}", other="Bearer opaque-text")
    assert "eyJ" not in said
    assert "opaque-text" not in said
    assert said.count("[secret]") == 3


@pytest.mark.parametrize("shape", ["logfmt", "json"])
def test_an_exception_is_one_line_too(shape: str) -> None:
    try:
        int("bad")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "stumbled", (), sys.exc_info())
    said = LineFormatter(shape, {}).format(record)
    assert "ValueError: invalid literal" in said
    assert "\n" not in said
