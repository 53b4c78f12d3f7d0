"""Mistakes of users, through the command line: each has a clear message and an exit code, and changes nothing."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from testbed import folders
from testbed.cli.main import run
from tests.fakes import api_server
from tests.fakes.api_server import ApiServer

Up = Callable[..., str]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Up:
    """Return a function that runs `up` with a kubeconfig, checks that nothing was created, and returns the error."""

    def call(kubeconfig: Path, *words: str, code: int) -> str:
        arguments = ["up", "--provider", "existing", "--kubeconfig", str(kubeconfig), "--driver", "none", *words]
        assert run(arguments) == code
        assert [path.name for path in folders.state().iterdir() if not path.name.startswith(".")] == []
        return capsys.readouterr().err

    return call


def _token(**claims: int) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{payload}.signature"


def test_a_kubeconfig_that_does_not_exist(refused: Up, tmp_path: Path) -> None:
    assert "--kubeconfig: no such file" in refused(tmp_path / "gone", code=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "cannot be read"), ("- 1", "is not a kubeconfig"), ("kind: Pod", "is not a kubeconfig"), ("", "is not")],
)
def test_a_file_that_is_no_kubeconfig(refused: Up, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "file").write_text(text)
    assert said in refused(tmp_path / "file", code=2)


def test_no_kubeconfig_anywhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    assert run(["up", "--provider", "existing", "--driver", "none"]) == 2
    assert f"no kubeconfig found at {tmp_path / 'gone'}" in capsys.readouterr().err


def test_an_unknown_context_is_answered_with_suggestions(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    said = refused(server.kubeconfig(tmp_path), "--context", "her", code=2)
    assert "has no context her" in said
    assert "did you mean here?" in said


def test_a_server_that_does_not_answer(refused: Up, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = ApiServer(f"http://127.0.0.1:{free.getsockname()[1]}")
        said = refused(nobody.kubeconfig(tmp_path), code=3)
    assert f"cannot reach {nobody.url} (context here of {tmp_path / 'kubeconfig'})" in said


def test_a_server_without_tls(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    server.url = server.url.replace("http:", "https:")
    assert f"the TLS connection to {server.url} " in refused(server.kubeconfig(tmp_path), code=3)


def test_a_server_that_is_no_kubernetes_api_server(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    server.every_answer = (200, "<html>")
    assert "answers, but is not a Kubernetes API server" in refused(server.kubeconfig(tmp_path), code=3)


def test_a_token_that_has_expired(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    server.every_answer = (401, {"reason": "Unauthorized", "message": "Unauthorized"})
    said = refused(server.kubeconfig(tmp_path, token=_token(exp=86400)), code=3)
    assert f"{server.url} (context here" in said
    assert "its token expired on 1970-01-02 00:00 UTC" in said


def test_unknown_credentials(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    server.every_answer = (401, {"reason": "Unauthorized", "message": "Unauthorized"})
    assert "does not accept the credentials (Unauthorized)" in refused(server.kubeconfig(tmp_path), code=3)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [("sh", 3, "(exit 4): SSO session has expired"), ("aws-of-nobody", 2, "credential plugin aws-of-nobody of ")],
)
def test_a_failing_credential_plugin_is_named_before_any_request(
    refused: Up, server: ApiServer, tmp_path: Path, command: str, code: int, said: str
) -> None:
    args = ["-c", "echo SSO session has expired >&2; exit 4"]
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": command,
        "args": args,
        "installHint": "Ask IT.",
    }
    told = refused(server.kubeconfig(tmp_path, exec=plugin), code=code)
    assert said in told
    assert "Ask IT." in told
    assert "ERROR:root" not in told
    assert told.count(server.url) == 1
    assert server.requests == []


def test_an_unsupported_kind_of_proxy(
    refused: Up, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    kubeconfig = server.kubeconfig(tmp_path)
    content = yaml.safe_load(kubeconfig.read_text())
    content["clusters"][0]["cluster"]["proxy-url"] = "socks5://user:SECRET@127.0.0.1:1080"
    kubeconfig.write_text(yaml.safe_dump(content))
    said = refused(kubeconfig, code=2)
    assert f"sets a socks5 proxy for {server.url}, which is not supported" in said
    assert "SECRET" not in said
    assert server.requests == []


def test_a_missing_certificate_file(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    server.url = server.url.replace("http:", "https:")
    kubeconfig = server.kubeconfig(tmp_path, **{"client-certificate": "gone.crt", "client-key": "gone.key"})
    said = refused(kubeconfig, code=2)
    assert str(tmp_path / "gone.crt") in said


@pytest.mark.parametrize(
    ("versions", "said"),
    [(["apps/v1"], "does not serve resource.k8s.io"), (["resource.k8s.io/v1beta1"], "only as v1beta1")],
)
def test_a_cluster_without_dynamic_resource_allocation(
    refused: Up, server: ApiServer, tmp_path: Path, versions: list[str], said: str
) -> None:
    server.answers["GET /apis"] = (200, api_server.groups(*versions))
    assert said in refused(server.kubeconfig(tmp_path), code=3)


def test_all_missing_permissions_are_reported_together(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    pods = {"verbs": ["*"], "apiGroups": [""], "resources": ["pods", "pods/exec", "pods/log", "pods/status"]}
    reviews = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    server.answers[reviews] = api_server.rules_review(pods, incomplete=True)
    said = refused(server.kubeconfig(tmp_path), code=3)
    assert "list resourceslices.resource.k8s.io" in said
    assert "create, delete, get, list, patch namespaces" in said
    assert " pods" not in said
    assert "judge-workloads.yaml" in said
    assert server.writes == []


def test_a_cluster_without_nodes(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    server.answers["GET /api/v1/nodes"] = (200, {"items": []})
    assert "has no nodes" in refused(server.kubeconfig(tmp_path), code=3)


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["--kubernetes", "1.37"], "--kubernetes"),
        (["--nodes", "2"], "--nodes"),
        (["--kubelet", "1.36"], "--kubelet"),
        (["--feature-gate", "DRAAdminAccess=true"], "--feature-gate"),
        (["--runtime-config", "api/alpha=true"], "--runtime-config"),
        (["--binaries-from", "cache"], "--binaries-from"),
    ],
)
def test_settings_for_new_clusters_are_refused(
    refused: Up, server: ApiServer, tmp_path: Path, words: list[str], flag: str
) -> None:
    said = refused(server.kubeconfig(tmp_path), *words, code=2)
    assert f"{flag} cannot be used with an existing cluster" in said
    assert server.requests == []


def test_a_foreign_driver_of_the_same_name_is_refused(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    name = "gpu.dra-testbed.example"
    server.answers[f"GET /apis/resource.k8s.io/v1/deviceclasses/{name}"] = (200, {"metadata": {"name": name}})
    words = [
        "--provider",
        "existing",
        "--kubeconfig",
        str(server.kubeconfig(tmp_path)),
        "--driver-image",
        "r.example/d",
    ]
    assert run(["up", *words]) == 2
    said = capsys.readouterr().err
    assert (
        f"driver {name} is already in the cluster: DeviceClass {name} exists, and dra-testbed did not install it"
        in said
    )
    assert "without spec.install" in said
    assert server.writes == []


def test_hardware_is_refused_where_no_driver_may_be_installed(refused: Up, server: ApiServer, tmp_path: Path) -> None:
    words = ["--allow", "read-only", "--hardware", "gpus"]
    assert "--hardware" in refused(server.kubeconfig(tmp_path), *words, code=2)


def test_an_image_that_no_node_lists_is_a_remark_and_no_error(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    words = ["--provider", "existing", "--kubeconfig", str(server.kubeconfig(tmp_path)), "--driver", "none"]
    assert run(["up", "--plan", *words]) == 0
    assert "no node lists image localhost/dra-testbed/workload:1" in capsys.readouterr().out
    image = {"names": ["localhost/dra-testbed/workload:1"]}
    server.answers["GET /api/v1/nodes"] = (200, {"items": [{**api_server.NODE, "status": {"images": [image]}}]})
    assert run(["up", "--plan", *words]) == 0
    assert "no node lists" not in capsys.readouterr().out


def test_a_testbed_comes_up_keeps_a_copy_of_one_context_and_is_removed(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path
) -> None:
    words = [
        "--provider",
        "existing",
        "--kubeconfig",
        str(server.kubeconfig(tmp_path)),
        "--workload-image",
        "r.example/w",
    ]
    assert run(["up", *words, "--driver", "none", "--name", "mine"]) == 0
    kept = folders.state() / "mine/cluster/kubeconfig"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [each["name"] for each in yaml.safe_load(kept.read_text())["contexts"]] == ["here"]
    assert run(["status", "--name", "mine"]) == 0
    assert "existing, Kubernetes 1.37.1" in capsys.readouterr().out
    assert run(["down", "--name", "mine"]) == 0
    assert not (folders.state() / "mine").exists()
    assert server.writes == []


@pytest.mark.parametrize(
    ("request_", "answer", "said"),
    [
        ("GET /api/v1/pods", (403, {"reason": "Forbidden", "message": "no"}), "this user may not list pods"),
        ("GET /apis/apps/v1", (504, {"reason": "Timeout", "message": "slow"}), "API group apps/v1 does not answer"),
    ],
)
def test_down_refuses_while_objects_cannot_be_listed(
    capsys: pytest.CaptureFixture[str],
    server: ApiServer,
    tmp_path: Path,
    request_: str,
    answer: tuple[int, object],
    said: str,
) -> None:
    words = ["--kubeconfig", str(server.kubeconfig(tmp_path)), "--workload-image", "r.example/w", "--name", "mine"]
    assert run(["up", "--provider", "existing", *words, "--driver", "none"]) == 0
    healthy, server.answers[request_] = server.answers.get(request_, (200, {"items": []})), answer
    assert run(["down", "--name", "mine"]) == 3
    assert f"nothing was removed: {said}" in capsys.readouterr().err
    assert (folders.state() / "mine/cluster/kubeconfig").is_file()
    server.answers[request_] = healthy
    assert run(["down", "--name", "mine"]) == 0
    assert not (folders.state() / "mine").exists()


def test_a_testbed_can_be_forgotten_if_its_cluster_no_longer_exists(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with api_server.running() as server:
        words = ["--kubeconfig", str(server.kubeconfig(tmp_path)), "--workload-image", "r.example/w", "--name", "mine"]
        assert run(["up", "--provider", "existing", *words, "--driver", "none"]) == 0
    assert run(["down", "--name", "mine"]) == 3
    assert "dra-testbed down --name mine --forget" in capsys.readouterr().err
    assert run(["down", "--name", "mine", "--forget"]) == 0
    assert not (folders.state() / "mine").exists()


def test_doctor_reports_why_a_cluster_cannot_be_used(
    capsys: pytest.CaptureFixture[str], server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path)))
    assert run(["doctor", "--provider", "existing"]) == 0
    server.every_answer = (401, {"reason": "Unauthorized", "message": "Unauthorized"})
    assert run(["doctor", "--provider", "existing"]) == 3
    assert "does not accept the credentials" in capsys.readouterr().out
