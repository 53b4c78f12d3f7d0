"""The disk with the machine's job: wheels, programs and images from the cache, and what to do with them; and the results that come back.

Used by ci/vm/__main__.py. What goes in is exactly what `up` would take, asked for by the same functions.
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
from testbed.providers import provider

CHECKOUT = Path(__file__).parents[2]
PYTHON = "3.11"  # the guest's
_PLATFORMS = (
    "manylinux2014_x86_64",
    *(f"manylinux_2_{minor}_x86_64" for minor in range(17, 37)),
)  # up to the guest's libc
_SCRIPTS = {"job.sh": Path(__file__).with_name("job.sh"), "host_snapshot.py": CHECKOUT / "ci/host_snapshot.py"}


@dataclass(frozen=True)
class Outcome:
    """What the job left: the exit code of `run`, its report, and the logs of a bring-up that failed, where there is one."""

    code: int
    report: Path
    failed: Path


def pack(folder: Path, kubernetes: str | None, words: Sequence[str], deadline: Deadline) -> Path:
    """The disk's image, made in `folder`."""
    content = folder / "job"
    wheels(content / "wheels", deadline)
    link_or_copy({**_SCRIPTS, **cached(folders.cache(), used(kubernetes))}, content)
    (content / "words").write_text("".join(f"{word}\0" for word in words))
    return make_disk(folder / "job.img", "12G", content)


def wheels(into: Path, deadline: Deadline) -> None:
    """Our wheel, and those of everything that it needs, for the guest's Python."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    call([*pip, "wheel", "--no-deps", "--wheel-dir", into, CHECKOUT], deadline)
    (ours,) = into.glob("dra_testbed-*.whl")
    guest = [f"--python-version={PYTHON}", "--implementation=cp", *(f"--platform={name}" for name in _PLATFORMS)]
    call([*pip, "download", "--only-binary=:all:", *guest, "--dest", into, ours], deadline)


def used(kubernetes: str | None) -> list[Path]:
    """The files of the cache that `up` would use; what is not there yet is fetched or built."""
    progress = Progress()
    lock = binaries.lock_for(kubernetes or binaries.minors()[0])
    programs = binaries.ensure(lock, provider("local").programs(), progress=progress)
    made = [images.sandbox(progress), images.workload(progress), images.driver(progress)]
    return [*programs.values(), *(image.archive for image in made)]


def cached(cache: Path, files: Iterable[Path]) -> dict[str, Path]:
    """Every file of the entries that these files belong to, by its place on the disk; and what names the images' packages."""
    found: dict[str, Path] = {}
    for file in files:
        if cache not in file.parents:
            raise VmFailed(f"{file} is not in the cache {cache}, so the machine would look for it in vain")
        found |= {f"cache/{each.relative_to(cache)}": each for each in sorted(file.parent.iterdir())}
    packages = cache / "images/packages.json"
    return found | ({"cache/images/packages.json": packages} if packages.exists() else {})


def link_or_copy(files: Mapping[str, Path], into: Path) -> None:
    """Put the files there; where a hard link is possible it costs nothing."""
    for name, source in files.items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copy2(source, target)


def outcome(result: Path, folder: Path) -> Outcome:
    """Unpack the results into `folder`, and say how `run` ended there."""
    folder.mkdir()
    call(["tar", "--extract", "--no-same-owner", "--file", result, "--directory", folder])
    status = folder / "status"
    return Outcome(code_in(status.read_text() if status.exists() else ""), folder / "report", folder / "failed")


def code_in(status: str) -> int:
    """The exit code in the file `status`."""
    marker = re.fullmatch(r"exit (\d{1,3})\n", status)
    if marker is None:
        raise VmFailed("the machine ended without having come to the end of `dra-testbed run`")
    return int(marker[1])
