from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.binaries import debian
from testbed.errors import TestbedError
from testbed.images import busybox


def _no_package(name: str, into: Path) -> Path:
    raise TestbedError("there is no apt-get here", hint="use Debian")


def test_the_package_is_preferred(tmp_path: Path, packaged_busybox: list[str]) -> None:
    assert busybox.static_busybox(tmp_path).is_relative_to(tmp_path)
    assert packaged_busybox == ["busybox-static"]


def test_without_the_package_a_static_busybox_of_the_host_is_used(
    tmp_path: Path, script: Callable[[str, str], Path], elf: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "fetch_package", _no_package)
    program = script("busybox", "")
    program.write_bytes(elf())

    assert busybox.static_busybox(tmp_path) == program


def test_without_any_busybox_the_error_lists_what_was_tried_and_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "fetch_package", _no_package)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(TestbedError) as raised:
        busybox.static_busybox(tmp_path)

    assert str(raised.value).splitlines() == [
        "cannot build images: no static busybox found",
        "  package busybox-static: there is no apt-get here",
        "  this host: not found on PATH",
        "  try: apt-get install busybox-static (or your distribution's static busybox)",
    ]


def test_the_error_names_a_busybox_of_the_host_that_is_not_static(
    tmp_path: Path, script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "fetch_package", _no_package)
    program = script("busybox", "")

    with pytest.raises(TestbedError, match=f"{program} is not a static program for this architecture"):
        busybox.static_busybox(tmp_path)


def test_busybox_itself_is_not_an_applet(script: Callable[[str, str], Path]) -> None:
    assert busybox.applets(script("busybox", 'test "$1" = --list && printf "sh\\nbusybox\\ncat\\n"')) == ["cat", "sh"]
