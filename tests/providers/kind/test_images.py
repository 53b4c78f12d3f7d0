"""Which image nodes are made of, and which archives a node lacks."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from testbed.errors import TestbedError, UsageError
from testbed.images import oci, tarball
from testbed.progress import Progress, Silent
from testbed.providers.base import NodeImage
from testbed.providers.kind import images
from testbed.providers.kind.engine import Engine
from tests.providers.kind.conftest import FakeEngine

DOCKER = Engine("docker")
PUBLISHED = "kindest/node:v1.37.0@sha256:feed"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    layer = oci.write_layer([tarball.file("a", b"a")], tmp_path / "layer.tar")
    oci.write_archive(
        "localhost/made:1", oci.configuration(oci.Settings(), [layer], ["a"]), [layer], tmp_path / "i.tar"
    )
    return tmp_path / "i.tar"


def wanted(archive: Path) -> NodeImage:
    def make(_: Progress) -> tuple[str, Path]:
        return "localhost/made:1", archive

    return NodeImage("1.37.1", PUBLISHED, make)


def test_the_published_image_is_taken_when_it_is_there(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine("image*) echo sha256:1;;")

    assert images.for_nodes(DOCKER, wanted(archive), None, Silent()) == PUBLISHED
    assert "pull" not in asked.read_text()


def test_it_is_pulled_when_it_is_not(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine("image*) exit 1;;\npull*) ;;")

    assert images.for_nodes(DOCKER, wanted(archive), None, Silent()) == PUBLISHED
    assert f"pull --quiet {PUBLISHED}" in asked.read_text()


@pytest.mark.parametrize("form", ["sha256:", ""], ids=["Docker", "Podman"])
def test_where_it_is_out_of_reach_one_is_made_and_loaded_once(
    fake_engine: FakeEngine, archive: Path, form: str
) -> None:
    manifests = {digest.removeprefix("sha256:") for digest in images.named(archive).values()}
    (config,) = images.ids_of(archive) - manifests
    asked = fake_engine(
        f"*localhost/made*) echo {form}{config};;\nimage*) exit 1;;\npull*) echo no such host >&2; exit 1;;"
    )

    assert images.for_nodes(DOCKER, wanted(archive), None, Silent()) == "localhost/made:1"
    assert "load" not in asked.read_text()


def test_an_older_image_of_the_same_name_is_replaced(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine("*localhost/made*) echo sha256:old;;\nimage*) exit 1;;\npull*) exit 1;;\nload*) ;;")

    images.for_nodes(DOCKER, wanted(archive), None, Silent())

    assert f"load --input {archive}" in asked.read_text()


def test_an_image_of_the_user_must_be_of_the_version_that_was_asked_for(fake_engine: FakeEngine, archive: Path) -> None:
    fake_engine("image*) echo sha256:1;;\nrun*) echo v1.36.4;;")

    with pytest.raises(UsageError, match=r"mine:1 is Kubernetes 1\.36\.4, but 1\.37\.1 was asked for"):
        images.for_nodes(DOCKER, wanted(archive), "mine:1", Silent())


@pytest.mark.parametrize(
    "said",
    [
        "cat: /kind/version: No such file or directory",
        "cat: can't open '/kind/version': No such file or directory",
        'exec: "cat": executable file not found in $PATH: unknown',
    ],
)
def test_an_image_that_is_no_node_is_refused(fake_engine: FakeEngine, archive: Path, said: str) -> None:
    fake_engine(f"image*) echo sha256:1;;\nrun*) echo {shlex.quote(said)} >&2; exit 1;;")

    with pytest.raises(UsageError, match="is no image of a kind node"):
        images.for_nodes(DOCKER, wanted(archive), "busybox", Silent())


def test_an_engine_that_cannot_start_a_container_is_not_the_images_fault(
    fake_engine: FakeEngine, archive: Path
) -> None:
    fake_engine("image*) echo sha256:1;;\nrun*) echo 'docker: no space left on device' >&2; exit 125;;")

    with pytest.raises(TestbedError, match="cannot look into mine:1: docker: no space left on device") as told:
        images.for_nodes(DOCKER, wanted(archive), "mine:1", Silent())
    assert not isinstance(told.value, UsageError)


def test_only_what_a_node_lacks_is_imported(archive: Path, tmp_path: Path) -> None:
    ((name, digest),) = images.named(archive).items()
    foreign = tmp_path / "foreign.tar"
    foreign.write_bytes(b"not a tar")
    head = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n"

    assert images.missing([archive], f"{head}{name} type {digest} 1MiB linux/amd64 -") == []
    assert images.missing([archive], f"{head}{name} type sha256:other 1MiB linux/amd64 -") == [archive]
    assert images.missing([archive, foreign], head) == [archive, foreign]
