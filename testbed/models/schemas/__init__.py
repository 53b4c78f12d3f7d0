"""The JSON Schemas of our files, generated from the models and shipped beside this module, for editors and for whoever reads our output."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

HERE = Path(__file__).parent
# file name -> where the model is, and whether users write it or we do
PUBLISHED = {
    "testbed": ("testbed.models.config", "TestbedFile", "validation"),
    "driver-file": ("testbed.models.driver_file", "DriverFile", "validation"),
    "hardware": ("testbed.models.hardware", "HardwareFile", "validation"),
    "report": ("testbed.models.report", "DriverConformanceReport", "serialization"),
    "status": ("testbed.models.status", "TestbedStatus", "serialization"),
}


class _Plain(GenerateJsonSchema):
    """Without titles that repeat the key, and without the null that stands for a key that is not there."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic calls it by this name
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = (
            self.generate_inner(schema["schema"]) if schema.get("default") is None else super().default_schema(schema)
        )
        return (
            made
            if self.mode == "serialization" or not isinstance(made.get("default"), dict)
            else {**made, "default": {}}
        )

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return (
            super().nullable_schema(schema) if self.mode == "serialization" else self.generate_inner(schema["schema"])
        )


def generated() -> Iterator[tuple[Path, str]]:
    """Each schema's file and what has to be in it."""
    for name, (module, cls, mode) in PUBLISHED.items():
        model = cast("type[BaseModel]", getattr(importlib.import_module(module), cls))
        schema: dict[str, Any] = model.model_json_schema(mode=cast("Any", mode), schema_generator=_Plain)
        content = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        yield HERE / f"{name}.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def stale() -> list[Path]:
    """The files that do not say what the models say."""
    return [path for path, text in generated() if not path.is_file() or path.read_text() != text]
