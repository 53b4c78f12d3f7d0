"""Which node image is used, and which archives a node lacks."""

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
        "localhost/made:1", oci.configuration(oci.ContainerSettings(), [layer], ["a"]), [layer], tmp_path / "i.tar"
    )
    return tmp_path / "i.tar"


def wanted(archive: Path) -> NodeImage:
    def make(_: Progress) -> tuple[str, Path]:
        return "localhost/made:1", archive

    return NodeImage("1.37.1", PUBLISHED, make)


def test_a_published_image_that_the_engine_has_is_used(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine("image*) echo sha256:1;;")

    assert images.node_image(DOCKER, wanted(archive), None, Silent()) == PUBLISHED
    assert "pull" not in asked.read_text()


def test_a_published_image_that_is_missing_is_pulled(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine("image*) exit 1;;\npull*) ;;")

    assert images.node_image(DOCKER, wanted(archive), None, Silent()) == PUBLISHED
    assert f"pull --quiet {PUBLISHED}" in asked.read_text()


@pytest.mark.parametrize("form", ["sha256:", ""], ids=["Docker", "Podman"])
def test_without_a_registry_an_image_is_built_and_loaded_once(
    fake_engine: FakeEngine, archive: Path, form: str
) -> None:
    manifests = {digest.removeprefix("sha256:") for digest in images.images_in(archive).values()}
    (config,) = images.ids_of(archive) - manifests
    asked = fake_engine(
        f"*localhost/made*) echo {form}{config};;\nimage*) exit 1;;\npull*) echo no such host >&2; exit 1;;"
    )

    assert images.node_image(DOCKER, wanted(archive), None, Silent()) == "localhost/made:1"
    assert "load" not in asked.read_text()


def test_an_older_image_of_the_same_name_is_replaced(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine(
        "*localhost/made*) echo sha256:old;;\nimage*) exit 1;;\npull*) echo no such host >&2; exit 1;;\nload*) ;;"
    )

    images.node_image(DOCKER, wanted(archive), None, Silent())

    assert f"load --input {archive}" in asked.read_text()


def pull_says(said: str) -> str:
    return f"*localhost/made*) echo sha256:old;;\nimage*) exit 1;;\npull*) echo {shlex.quote(said)} >&2; exit 1;;\nload*) ;;"


@pytest.mark.parametrize(
    "said",
    [
        'Error response from daemon: Get "https://r.example/v2/": dial tcp: lookup r.example on 127.0.0.1:53: no such host',
        'pinging container registry r.example: Get "https://r.example/v2/": dial tcp 192.0.2.1:443: connect: connection refused',
        'Get "https://r.example/v2/": dial tcp 192.0.2.1:443: i/o timeout',
        'Get "https://r.example/v2/": net/http: TLS handshake timeout',
        'Get "https://r.example/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority',
        'Get "https://r.example/v2/": proxyconnect tcp: dial tcp 192.0.2.1:3128: connect: connection refused',
        'Get "https://r.example/v2/": Forbidden',
        "received unexpected HTTP status: 503 Service Unavailable",
        'Get "https://r.example/v2/": EOF',
        "net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)",
    ],
)
def test_an_unreachable_registry_is_detected_by_the_engines_error(
    fake_engine: FakeEngine, archive: Path, said: str
) -> None:
    fake_engine(pull_says(said))

    assert images.node_image(DOCKER, wanted(archive), None, Silent()) == "localhost/made:1"


@pytest.mark.parametrize(
    "said",
    [
        "toomanyrequests: You have reached your unauthenticated pull rate limit.",
        "Error response from daemon: pull access denied for kindest/node, repository does not exist or may require 'docker login'",
        "Error response from daemon: manifest for kindest/node:v1.37.0 not found: manifest unknown",
        "unexpected status from HEAD request to https://r.example/v2/n/manifests/1: 403 Forbidden",
        'Head "https://r.example/v2/n/manifests/1": unauthorized: authentication required',
        "no matching manifest for linux/riscv64 in the manifest list entries",
        "",
    ],
)
def test_no_image_is_built_if_a_registry_refuses(fake_engine: FakeEngine, archive: Path, said: str) -> None:
    asked = fake_engine(pull_says(said))

    with pytest.raises(TestbedError) as told:
        images.node_image(DOCKER, wanted(archive), None, Silent())

    assert told.value.what == f"docker cannot pull kindest/node:v1.37.0: {said or 'exit 1'}"
    for cure in ("docker login,", "mirror", "--node-image", "dra-testbed images node"):
        assert cure in told.value.hint
    assert "load" not in asked.read_text()


def test_the_hint_names_the_registry_of_the_reference(fake_engine: FakeEngine, archive: Path) -> None:
    fake_engine(pull_says("denied"))

    with pytest.raises(TestbedError, match=r"try: docker login r\.example:5000,"):
        images.node_image(DOCKER, wanted(archive), "r.example:5000/node:1", Silent())


def test_a_full_disk_is_not_reported_as_a_refusal_of_a_registry(fake_engine: FakeEngine, archive: Path) -> None:
    fake_engine(pull_says("write /blob: no space left on device"))

    with pytest.raises(TestbedError, match="no space left on device\n  try: free disk space"):
        images.node_image(DOCKER, wanted(archive), None, Silent())


def test_if_pulling_and_building_fail_both_reasons_are_reported(fake_engine: FakeEngine) -> None:
    def fails(_: Progress) -> tuple[str, Path]:
        raise TestbedError("mmdebstrap is not installed", hint="apt install mmdebstrap")

    fake_engine(pull_says("dial tcp: lookup r.example: no such host"))

    with pytest.raises(TestbedError) as told:
        images.node_image(DOCKER, NodeImage("1.37.1", PUBLISHED, fails), None, Silent())

    assert "lookup r.example: no such host" in told.value.what
    assert "mmdebstrap is not installed" in told.value.what
    assert "apt install mmdebstrap" in told.value.hint


def test_a_given_image_is_never_replaced_by_a_built_one(fake_engine: FakeEngine, archive: Path) -> None:
    asked = fake_engine(pull_says("dial tcp: lookup r.example: no such host"))

    with pytest.raises(TestbedError, match="cannot pull mine:1: dial tcp"):
        images.node_image(DOCKER, wanted(archive), "mine:1", Silent())
    assert "load" not in asked.read_text()


def test_a_given_image_must_have_the_requested_version(fake_engine: FakeEngine, archive: Path) -> None:
    fake_engine("image*) echo sha256:1;;\nrun*) echo v1.36.4;;")

    with pytest.raises(UsageError, match=r"mine:1 has Kubernetes 1\.36\.4, but 1\.37\.1 was asked for"):
        images.node_image(DOCKER, wanted(archive), "mine:1", Silent())


@pytest.mark.parametrize(
    "said",
    [
        "cat: /kind/version: No such file or directory",
        "cat: can't open '/kind/version': No such file or directory",
        'exec: "cat": executable file not found in $PATH: unknown',
    ],
)
def test_an_image_that_is_not_a_node_image_is_refused(fake_engine: FakeEngine, archive: Path, said: str) -> None:
    fake_engine(f"image*) echo sha256:1;;\nrun*) echo {shlex.quote(said)} >&2; exit 1;;")

    with pytest.raises(UsageError, match="is not a kind node image"):
        images.node_image(DOCKER, wanted(archive), "busybox", Silent())


def test_an_engine_that_cannot_start_a_container_is_not_blamed_on_the_image(
    fake_engine: FakeEngine, archive: Path
) -> None:
    fake_engine("image*) echo sha256:1;;\nrun*) echo 'docker: no space left on device' >&2; exit 125;;")

    with pytest.raises(
        TestbedError, match="cannot read /kind/version in mine:1: docker: no space left on device"
    ) as told:
        images.node_image(DOCKER, wanted(archive), "mine:1", Silent())
    assert not isinstance(told.value, UsageError)


def test_only_what_a_node_lacks_is_imported(archive: Path, tmp_path: Path) -> None:
    ((name, digest),) = images.images_in(archive).items()
    foreign = tmp_path / "foreign.tar"
    foreign.write_bytes(b"not a tar")
    head = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n"

    assert images.archives_to_load([archive], f"{head}{name} type {digest} 1MiB linux/amd64 -") == []
    assert images.archives_to_load([archive], f"{head}{name} type sha256:other 1MiB linux/amd64 -") == [archive]
    assert images.archives_to_load([archive, foreign], head) == [archive, foreign]
