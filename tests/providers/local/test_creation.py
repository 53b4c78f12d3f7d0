"""Creating a cluster, as far as no machine is booted."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.providers.base import Artifacts, ClusterSpec
from testbed.providers.local import creation


class Booting(Exception):
    """The control plane would boot now."""


def test_a_control_plane_alone_needs_no_programs_of_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def boot(_layout: object) -> None:
        raise Booting

    monkeypatch.setattr(creation, "_boot_control_plane", boot)

    with pytest.raises(Booting):
        creation.start_control_plane("bare", ClusterSpec("1.37.1"), Artifacts({}), tmp_path)
