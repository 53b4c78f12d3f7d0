"""The fake drivers as YAML for `kubectl apply -f`, on any cluster: `python -m testbed.drivers.rendered` writes it, `--check` is for lint.

The same templates and driver files as `up` has; docs/install-the-fake-driver.md says how to use what comes out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from testbed import folders
from testbed.drivers.install import rendered_manifests
from testbed.images.driver import RELEASE
from testbed.models.driver_file import DriverFile, load_driver_file

# By file: the driver file, and the hardware that it pretends to have; none for what tidies up after it.
RENDERED = {
    "fake-gpu": ("fake-gpu", "server"),
    "fake-nic": ("fake-nic", "server"),
    "fake-gpu-with-fabric": ("fake-gpu", "fabric"),
    "remove-fake-gpu": ("fake-gpu", None),
    "remove-fake-nic": ("fake-nic", None),
}
_REMOVAL = "fake_driver/optional/removal.yaml"
_HEADER = """\
# {what}, made by python -m testbed.drivers.rendered; change the templates, not this file.
# The image is what `dra-testbed images save driver FILE` writes; docs/install-the-fake-driver.md says the rest.
"""


def rendered_files() -> Iterator[tuple[Path, str]]:
    """Each file and what has to be in it."""
    home = folders.data("manifests")
    for name, (driver, hardware) in RENDERED.items():
        driver_file = load_driver_file(home / "drivers" / f"{driver}.yaml")
        if hardware:
            what = f"Driver file {driver}.yaml with hardware {hardware}.yaml"
            parts = rendered_manifests(driver_file, image=RELEASE, hardware=home / "hardware" / f"{hardware}.yaml")
        else:
            what = f"What removes the remains of driver file {driver}.yaml"
            parts = rendered_manifests(_with_manifest(driver_file, home / _REMOVAL), image=RELEASE)
        content = "---\n".join(part.lstrip("\n") for part in parts.values() if part.strip())
        yield home / "fake_driver" / "rendered" / f"{name}.yaml", _HEADER.format(what=what) + content


def _with_manifest(driver_file: DriverFile, manifest: Path) -> DriverFile:
    """The same driver file with another manifest."""
    install = driver_file.install and driver_file.install.model_copy(update={"manifests": (manifest,)})
    return driver_file.model_copy(update={"spec": driver_file.spec.model_copy(update={"install": install})})


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m testbed.drivers.rendered [--check]\n")
        return 2
    stale = [(path, text) for path, text in rendered_files() if not path.is_file() or path.read_text() != text]
    for path, text in stale:
        if arguments:
            sys.stderr.write(f"{path} is stale; run: python -m testbed.drivers.rendered\n")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
