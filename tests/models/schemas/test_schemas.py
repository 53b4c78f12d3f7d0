"""The shipped schemas match the models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.models import schemas
from testbed.models.schemas.__main__ import main


def test_the_schemas_are_up_to_date() -> None:
    assert schemas.stale() == []


def test_every_schema_has_a_model() -> None:
    assert {path.stem for path in schemas.HERE.glob("*.json")} == set(schemas.PUBLISHED)


def test_schemas_of_user_files_allow_no_null_and_no_unknown_keys() -> None:
    schema = json.loads((schemas.HERE / "testbed.json").read_text())

    assert "null" not in json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["kind"]["const"] == "Testbed"


def test_stale_schemas_are_listed_and_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schemas, "HERE", tmp_path)

    assert main(["--check"]) == 1
    assert "testbed.json is stale; run: python -m testbed.models.schemas" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_other_arguments_are_refused() -> None:
    assert main(["--chek"]) == 2
