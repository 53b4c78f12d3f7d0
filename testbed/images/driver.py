"""Build the fake driver's image: Python, wheels, code. With Docker if an engine answers, otherwise from the distribution's packages.

Used by bringup and `dra-testbed images`, through testbed.images. The code has its own layer, so a rebuild after a change takes a second.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from testbed import __version__, folders
from testbed.errors import TestbedError
from testbed.images import docker, oci, python_base, tarball, wheels
from testbed.images.basics import PATH
from testbed.images.interpreter import Interpreter
from testbed.images.oci import ContainerSettings, Image
from testbed.images.python_base import Packages
from testbed.images.store import CacheEntry, Store, key_of
from testbed.progress import Progress, Step

BuildMethod = Literal["docker", "packages"]

HOME = "opt/dra-testbed"
SETTINGS = ContainerSettings(
    entrypoint=("python3", "-m", "fake_driver"),
    env={
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"/{HOME}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    },
)
RELEASE = f"localhost/dra-testbed/driver:{__version__}"  # the name in the manifests that users apply themselves
_IMPORTS = ("grpc", "google.protobuf", "urllib3", "yaml", "fake_driver")
_CODE = ("fake_driver", "testbed/__init__.py", "testbed/kubelet/__init__.py", "testbed/kubelet/stubs")
_RECIPE = 1  # increase it when the same layers and code give another image


def driver(progress: Progress, *, build_with: BuildMethod | None = None, refresh: bool = False) -> Image:
    """Return the image from the cache, or build it.

    `build_with` selects the method; without it, packages are used if Docker is not available or fails. With `refresh`, apt is
    asked for newer packages; otherwise the package versions of the last build are used again.
    """
    found = None if refresh else cached(build_with)
    if found:
        return found
    with progress.step("image driver") as step:
        if build_with == "docker" or (build_with is None and docker.is_available()):
            try:
                return _build_with_docker(step)
            except TestbedError as failed:
                if build_with:
                    raise
                progress.say(
                    f"Docker could not build the driver's image ({_last_line(failed)}); building it from packages instead"
                )
        return _build_from_packages(step, refresh=refresh)


def cached(method: BuildMethod | None = None) -> Image | None:
    """Return the image of the current code if it is in the cache."""
    for key in _keys(method):
        if entry := Store().find("driver", key):
            return _image(key, entry)
    return None


def reference(key: str) -> str:
    """Return the name that pods use. It depends on the content, so a node never runs an image of older code."""
    return f"localhost/dra-testbed/driver:{key[:12]}"


def code() -> dict[str, Path]:
    """Return the files of the code layer by their path in the image's PYTHONPATH folder."""
    files: dict[str, Path] = {}
    for name in _CODE:
        source = folders.packages() / name
        if not source.exists():
            raise TestbedError(f"the installation is damaged: {source} is missing", hint="reinstall dra-testbed")
        found = sorted(source.rglob("*")) if source.is_dir() else [source]
        files |= {str(path.relative_to(folders.packages())): path for path in found if _is_code(path)}
    return files


def _keys(method: BuildMethod | None) -> Iterator[str]:
    content = _code_digest(code())
    if method != "packages":
        yield _docker_key(content)
    packages = python_base.last_resolved()
    if method != "docker" and packages:
        yield _packages_key(packages, content)


def _docker_key(content: str) -> str:
    return key_of([*docker.key_parts(), content])


def _packages_key(packages: Packages, content: str) -> str:
    return key_of(["packages", _RECIPE, _wheels(packages).key, SETTINGS.as_json(), content])


def _build_with_docker(step: Step) -> Image:
    content = _code_digest(code())
    key = _docker_key(content)

    def build(archive: Path, scratch: Path) -> Mapping[str, Any]:
        source = scratch / "code"
        _copy_code(source, content)
        return {**docker.build(reference(key), source, archive, scratch, step), "with": "docker"}

    return _image(key, Store().get_or_build("driver", key, step, build))


def _build_from_packages(step: Step, *, refresh: bool) -> Image:
    packages = (None if refresh else python_base.last_resolved()) or python_base.resolve()
    try:
        base = python_base.layer(packages, step)
    except TestbedError:
        newer = python_base.resolve()  # the mirror may no longer have the versions of the last resolution
        if newer == packages:
            raise
        packages, base = newer, python_base.layer(newer, step)
    wheels_layer = wheels.layer(_wheels(packages), base.file, step)
    content = _code_digest(code())
    key = _packages_key(packages, content)
    return _image(key, Store().get_or_build("driver", key, step, _builder(key, content, base, wheels_layer, step)))


def _builder(
    key: str, content: str, base: CacheEntry, wheels_layer: CacheEntry, step: Step
) -> Callable[[Path, Path], Mapping[str, Any]]:
    def build(archive: Path, scratch: Path) -> Mapping[str, Any]:
        step.note("the driver's code")
        root = scratch / "root"
        wheels.unpack_layer(base.file, root)
        wheels.unpack_layer(wheels_layer.file, root)
        _copy_code(root / HOME, content)
        python = Interpreter(root)
        compiled = python.compile([HOME])
        if compiled:
            python.check_imports(_IMPORTS, [HOME, wheels.DIST_PACKAGES])
        top = oci.write_layer(tarball.tree(root / HOME, HOME), scratch / "code.tar")
        layers = [oci.Layer.of(base.file), oci.Layer.of(wheels_layer.file), top]
        config = oci.configuration(SETTINGS, layers, ["Python of the distribution", "wheels", "the fake driver"])
        digest = oci.write_archive(reference(key), config, layers, archive)
        return {
            "digest": digest,
            "with": "packages",
            "packages": base.facts["packages"],
            "wheels": wheels_layer.facts["wheels"],
            "compiled": compiled,
        }

    return build


def _wheels(packages: Packages) -> wheels.Wheels:
    return wheels.Wheels(packages.python, packages.key)


def _image(key: str, entry: CacheEntry) -> Image:
    return Image("driver", reference(key), entry.file, entry.facts["digest"])


def _copy_code(into: Path, digest: str) -> None:
    files = code()
    for path, source in files.items():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, into / path)
    if _code_digest({path: into / path for path in files}) != digest:
        raise TestbedError("the driver's code changed while its image was being built", hint="try again")


def _code_digest(files: Mapping[str, Path]) -> str:
    return key_of({path: hashlib.sha256(source.read_bytes()).hexdigest() for path, source in files.items()})


def _is_code(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".pyc", ".pyi"}


def _last_line(failed: TestbedError) -> str:
    return failed.what.strip().splitlines()[-1].strip()
