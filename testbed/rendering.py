"""Templates to text: jinja2 with StrictUndefined. A variable that is missing, or given and never used, is an error."""

from __future__ import annotations

from pathlib import Path

import jinja2
import jinja2.meta

from testbed.errors import UsageError

_environment = jinja2.Environment(
    autoescape=False,  # noqa: S701 - what is rendered is YAML and shell, never a page
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, variables: dict[str, object], *, name: str = "template", allow_unused: bool = False) -> str:
    """The template with its variables filled in. `allow_unused` is for callers that offer the same facts to many templates."""
    try:
        wanted = jinja2.meta.find_undeclared_variables(_environment.parse(template))
        unused = set(variables) - wanted
        if unused and not allow_unused:
            raise UsageError(
                f"{name} does not use: {', '.join(sorted(unused))}", hint="take the variable out, or use it"
            )
        return _environment.from_string(template).render(variables)
    except jinja2.UndefinedError as missing:
        known = ", ".join(sorted(variables)) or "none"
        raise UsageError(f"{name}: {missing.message}", hint=f"variables that it may use: {known}") from missing
    except jinja2.TemplateSyntaxError as broken:
        raise UsageError(f"{name}, line {broken.lineno}: {broken.message}") from broken


def variables_of(path: Path) -> set[str]:
    """The variables that a template uses."""
    try:
        return jinja2.meta.find_undeclared_variables(_environment.parse(path.read_text()))
    except jinja2.TemplateSyntaxError as broken:
        raise UsageError(f"{path}, line {broken.lineno}: {broken.message}") from broken


def render_file(path: Path, variables: dict[str, object], *, allow_unused: bool = False) -> str:
    """The file rendered; errors name it."""
    return render(path.read_text(), variables, name=str(path), allow_unused=allow_unused)
