from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.onboarding.discovery.sources import INSTALLED, find_source, process_source, provisional, split_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "install.yaml",
        "base/kustomization.yaml",
        "charts/acme-driver/Chart.yaml",
        "values.yaml",
        "image.tar",
        "nics.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def test_what_a_path_is(folder: Path) -> None:
    chart = folder / "charts/acme-driver"
    assert find_source([folder / "install.yaml"], None, [], []).install == {"manifests": [folder / "install.yaml"]}
    assert find_source([folder / "base"], None, [], []).install == {"kustomize": folder / "base"}
    assert find_source([chart], folder / "values.yaml", [], []).install == {
        "chart": {"path": chart, "values": folder / "values.yaml"}
    }
    assert find_source([], None, [], []) == INSTALLED


def test_companions_are_installed_first_and_images_loaded(folder: Path) -> None:
    found = find_source([folder / "install.yaml"], None, [folder / "image.tar"], [folder / "nics.yaml"])
    assert found.relative_to(folder) == {"manifests": ["nics.yaml", "install.yaml"], "images": ["image.tar"]}
    assert found.relative_to(folder / "base")["images"] == ["../image.tar"]


def test_a_kustomization_can_have_companions(folder: Path) -> None:
    found = find_source([folder / "base"], None, [], [folder / "nics.yaml"])
    assert provisional(found).spec.install


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is for a chart"):
        find_source([folder / "install.yaml"], folder / "values.yaml", [], [])
    with pytest.raises(UsageError, match="is complete"):
        find_source([folder / "base", folder / "install.yaml"], None, [], [])


def test_the_name_is_that_of_the_project(folder: Path) -> None:
    project = folder / "dranet@v1.4.0"
    (project / "deploy").mkdir(parents=True)
    (project / "deploy/install.yaml").write_text("")
    assert find_source([project / "deploy/install.yaml"], None, [], []).name == "dranet"
    assert find_source([folder / "charts/acme-driver"], None, [], []).name == "acme-driver"


def test_a_program_is_named_relative_to_the_driver_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "acme.bin").write_text("")
    found = process_source(["acme.bin", "--node", "{{ node }}"], [])
    assert (found.name, found.is_process) == ("acme", True)
    assert found.relative_to(folder)["process"] == {"command": ["./acme.bin", "--node", "{{ node }}"]}
    assert found.relative_to(folder / "base")["process"]["command"][0] == "../acme.bin"
    install = provisional(found).install
    assert install
    assert install.process
    assert install.process.copied == {str(folder / "acme.bin"): folder / "acme.bin"}


def test_a_template_variable_is_a_part_of_a_word() -> None:
    words = split_command("./plugin --node {{ node }} --name='a b' --uid={{pod_uid}}")
    assert words == ["./plugin", "--node", "{{node}}", "--name=a b", "--uid={{pod_uid}}"]
    with pytest.raises(ValueError, match="closing quotation"):
        split_command("./plugin 'open")


def test_a_program_that_is_no_file_is_searched_on_the_nodes() -> None:
    assert process_source(["python3", "-m", "driver"], []).relative_to(Path("/"))["process"]["command"][0] == "python3"
