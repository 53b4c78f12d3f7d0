"""Renders jinja2 templates with StrictUndefined. A variable that is undefined, or given and not used, is an error.

A template may import others from its folder, and parse YAML with the filter `from_yaml`.
"""

from __future__ import annotations

import functools
from pathlib import Path

import jinja2
import jinja2.meta
import yaml

from testbed.errors import UsageError


def render(template: str, variables: dict[str, object], *, name: str = "template", allow_unused: bool = False) -> str:
    """Return the rendered template. `allow_unused` is for callers that pass the same variables to many templates."""
    return _render(_environment(), template, variables, name, allow_unused)


def render_file(path: Path, variables: dict[str, object], *, allow_unused: bool = False) -> str:
    """Return the rendered file; errors name it."""
    return _render(_environment(path.parent), path.read_text(), variables, str(path), allow_unused)


def variables_of(path: Path) -> set[str]:
    """Return the names of the variables that a template uses."""
    try:
        return jinja2.meta.find_undeclared_variables(_environment().parse(path.read_text()))
    except jinja2.TemplateSyntaxError as broken:
        raise UsageError(f"{path}, line {broken.lineno}: {broken.message}") from broken


def _render(
    environment: jinja2.Environment, template: str, variables: dict[str, object], name: str, allow_unused: bool
) -> str:
    try:
        unused = set(variables) - jinja2.meta.find_undeclared_variables(environment.parse(template))
        if unused and not allow_unused:
            raise UsageError(f"{name} does not use: {', '.join(sorted(unused))}", hint="remove the variable, or use it")
        return environment.from_string(template).render(variables)
    except jinja2.UndefinedError as missing:
        known = ", ".join(sorted(variables)) or "none"
        raise UsageError(f"{name}: {missing.message}", hint=f"available variables: {known}") from missing
    except jinja2.TemplateSyntaxError as broken:
        raise UsageError(f"{name}, line {broken.lineno}: {broken.message}") from broken
    except jinja2.TemplateNotFound as missing:
        raise UsageError(f"{name} imports {missing.name}, which is not in the same folder") from missing
    except (yaml.YAMLError, TypeError) as wrong:
        raise UsageError(f"{name}: a variable has a value that it can't use: {wrong}") from wrong


@functools.cache
def _environment(folder: Path | None = None) -> jinja2.Environment:
    """Return the settings of all templates. Imports are looked up in `folder`."""
    made = jinja2.Environment(
        autoescape=False,  # noqa: S701 - the output is YAML or shell, never HTML
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(folder) if folder else None,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["from_yaml"] = yaml.safe_load
    return made
