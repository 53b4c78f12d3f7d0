"""Build the disk with the machine's job (wheels, programs, images, scripts), and unpack its results. Used by ci/vm/__main__.py.

The same functions as in `up` select the programs and images.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.vm.machine import Deadline, VmFailed, call, make_disk
from testbed import binaries, folders, images
from testbed.progress import Progress
from testbed.providers.local import LocalProvider

CHECKOUT = Path(__file__).parents[2]
PYTHON = "3.11"  # the guest's
_PLATFORMS = (
    "manylinux2014_x86_64",
    *(f"manylinux_2_{minor}_x86_64" for minor in range(17, 37)),
)  # up to the guest's libc
_SCRIPTS = {"job.sh": Path(__file__).with_name("job.sh"), "host_snapshot.py": CHECKOUT / "ci/host_snapshot.py"}


@dataclass(frozen=True)
class Outcome:
    """The results of the job: the exit code of `run`, its report, and the logs of a failed bring-up."""

    code: int
    report: Path
    failed: Path


def pack(folder: Path, kubernetes: str | None, words: Sequence[str], deadline: Deadline) -> Path:
    """Build the image of the disk in `folder` and return it."""
    content = folder / "job"
    wheels(content / "wheels", deadline)
    link_or_copy({**_SCRIPTS, **cached(folders.cache(), used(kubernetes))}, content)
    (content / "words").write_text("".join(f"{word}\0" for word in words))
    return make_disk(folder / "job.img", "12G", content)


def wheels(into: Path, deadline: Deadline) -> None:
    """Build our wheel and download its dependencies for the guest's Python."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    call([*pip, "wheel", "--no-deps", "--wheel-dir", into, CHECKOUT], deadline)
    (ours,) = into.glob("dra_testbed-*.whl")
    guest = [f"--python-version={PYTHON}", "--implementation=cp", *(f"--platform={name}" for name in _PLATFORMS)]
    call([*pip, "download", "--only-binary=:all:", *guest, "--dest", into, ours], deadline)


def used(kubernetes: str | None) -> list[Path]:
    """Return the files in the cache that `up` uses; fetch or build the missing ones."""
    progress = Progress()
    lock = binaries.lock_for(kubernetes or binaries.minors()[0])
    programs = binaries.ensure(lock, LocalProvider().programs(), progress=progress)
    made = [images.sandbox(progress), images.workload(progress), images.driver(progress)]
    return [*programs.values(), *(image.archive for image in made)]


def cached(cache: Path, files: Iterable[Path]) -> dict[str, Path]:
    """Return all files in the folders of these files by their path on the disk, and the list of the images' packages."""
    found: dict[str, Path] = {}
    for file in files:
        if cache not in file.parents:
            raise VmFailed(f"{file} is not in the cache {cache}, so the machine would not find it")
        found |= {f"cache/{each.relative_to(cache)}": each for each in sorted(file.parent.iterdir())}
    packages = cache / "images/packages.json"
    return found | ({"cache/images/packages.json": packages} if packages.exists() else {})


def link_or_copy(files: Mapping[str, Path], into: Path) -> None:
    """Put files into a folder, as hard links where possible."""
    for name, source in files.items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copy2(source, target)


def outcome(result: Path, folder: Path) -> Outcome:
    """Unpack the results into `folder` and return them."""
    folder.mkdir()
    call(["tar", "--extract", "--no-same-owner", "--file", result, "--directory", folder])
    status = folder / "status"
    return Outcome(code_in(status.read_text() if status.exists() else ""), folder / "report", folder / "failed")


def code_in(status: str) -> int:
    """Return the exit code in the file `status`. Raise VmFailed if there is none."""
    marker = re.fullmatch(r"exit (\d{1,3})\n", status)
    if marker is None:
        raise VmFailed("the machine switched off before `dra-testbed run` ended")
    return int(marker[1])
