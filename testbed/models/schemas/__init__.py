"""JSON Schemas of the files that dra-testbed reads and writes, generated from the models for editors and programs."""

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
# Schema name -> module and class of the model, and the mode: validation for what users write, serialization for what we write.
PUBLISHED = {
    "testbed": ("testbed.models.config", "TestbedFile", "validation"),
    "driver-file": ("testbed.models.driver_file", "DriverFile", "validation"),
    "hardware": ("testbed.models.hardware", "HardwareFile", "validation"),
    "report": ("testbed.models.report", "DriverConformanceReport", "serialization"),
    "status": ("testbed.models.status", "TestbedStatus", "serialization"),
}


class _Plain(GenerateJsonSchema):
    """Generates schemas without titles that repeat the key, and without null for absent keys."""

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
    """Yield the file of each schema and its expected content."""
    for name, (module, cls, mode) in PUBLISHED.items():
        model = cast("type[BaseModel]", getattr(importlib.import_module(module), cls))
        schema: dict[str, Any] = model.model_json_schema(mode=cast("Any", mode), schema_generator=_Plain)
        content = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        yield HERE / f"{name}.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def stale() -> list[Path]:
    """Return the schema files that differ from their models."""
    return [path for path, text in generated() if not path.is_file() or path.read_text() != text]
