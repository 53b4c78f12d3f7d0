"""Renders a kustomization with kustomize or kubectl. Used by `install`."""

from __future__ import annotations

from pathlib import Path

from testbed.drivers.manifests import tools


def build(folder: Path) -> str:
    """Return the manifests of a kustomization as YAML."""
    program = tools.find(tools.KUSTOMIZE)
    verb = "build" if program.name == "kustomize" else "kustomize"
    return tools.render(f"kustomization {folder}", program, verb, folder)
