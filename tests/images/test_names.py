from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.images import archives, names

DIGEST = "@sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("name", "complete"),
    [
        ("driver", "docker.io/library/driver:latest"),
        ("acme/driver:1", "docker.io/acme/driver:1"),
        ("docker.io/driver", "docker.io/library/driver:latest"),
        ("localhost/driver", "localhost/driver:latest"),
        ("localhost:5000/driver:1", "localhost:5000/driver:1"),
        (f"registry.example/a/driver{DIGEST}", f"registry.example/a/driver{DIGEST}"),
    ],
)
def test_a_name_is_completed_as_the_kubelet_does(name: str, complete: str) -> None:
    assert names.check(name) == complete


@pytest.mark.parametrize("name", ["", "Driver", "a b", "a:", "a/", "a@sha256:12", "/a"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid name of an image"):
        names.check(name)


@pytest.mark.parametrize("name", ["driver", "localhost:5000/a/driver:1", f"registry.example/driver:1{DIGEST}"])
def test_the_last_component_has_no_tag_and_no_digest(name: str) -> None:
    assert names.last_component(name) == "driver"


def _archive(path: Path, **lists: object) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in lists.items():
            data = json.dumps(content).encode()
            info = tarfile.TarInfo(f"{name}.json")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_names_are_read_from_docker_and_oci_archives(tmp_path: Path) -> None:
    docker = _archive(tmp_path / "a.tar", manifest=[{"RepoTags": ["a:1", "b:1"]}, {"RepoTags": None}])
    oci = _archive(
        tmp_path / "b.tar",
        index={
            "manifests": [
                {
                    "annotations": {
                        "io.containerd.image.name": "docker.io/library/a:1",
                        "org.opencontainers.image.ref.name": "1",
                    }
                },
                {"digest": "without a name"},
            ]
        },
    )

    assert archives.names_in(docker) == ("docker.io/library/a:1", "docker.io/library/b:1")
    assert archives.names_in(oci) == ("docker.io/library/a:1",)


def test_entries_of_an_archive_that_are_no_images_have_no_names(tmp_path: Path) -> None:
    assert archives.names_in(_archive(tmp_path / "a.tar", manifest=["a", None], index={"manifests": {"a": 1}})) == ()
