"""Drafts are written as driver files that can be loaded, with the reasons and the open questions as comments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.models.driver_file import load_driver_file
from testbed.onboarding.discovery.draft import Draft, Observed, draft
from testbed.onboarding.discovery.facts import DriverPods, PublishedDevice, Sample
from testbed.onboarding.discovery.inference.classes import classes_of
from testbed.onboarding.discovery.inference.pods import describe
from testbed.onboarding.discovery.limits import Limits
from testbed.onboarding.discovery.questions import Question, Questions
from testbed.onboarding.discovery.writer import write
from tests.onboarding.discovery.shapes import GPU, GPUS, NODES, PLAIN, daemonset, device_class, sample

CDI = '{"containerEdits": {"env": ["GPU_DEVICE_0_UUID=gpu-node-1-0"]}}'


def gpu_draft(
    *samples: Sample,
    pods: DriverPods | None = None,
    devices: list[PublishedDevice] | None = None,
    limits: Limits | None = None,
    questions: Questions | None = None,
) -> Draft:
    classes = classes_of(GPU, [device_class("gpus", f"device.driver == '{GPU}'")], devices or GPUS)
    nodes = [{"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}} for name in NODES]
    observed = Observed(
        GPU, {"installed": True}, describe(pods or daemonset("acme")), classes, nodes, (), samples, limits or Limits()
    )
    return draft(observed, questions or Questions())


def with_gpu(**changes: Any) -> Sample:
    found = sample(GPUS[0], variables={"GPU_DEVICE_0_UUID": "gpu-node-1-0"})
    return replace(found, cdi=CDI, **changes)


def test_a_draft_becomes_a_driver_file(tmp_path: Path) -> None:
    made = gpu_draft(PLAIN, with_gpu())
    path = tmp_path / "acme.yaml"
    path.write_text(write("acme", made, []))
    found = load_driver_file(path)
    assert (found.driver, found.device_class, found.devices.per_node) == (GPU, "gpus", 3)
    assert (found.identity_attribute, found.is_identity_unique) == ("uuid", True)
    assert found.probe.ids("PATH=/bin\nGPU_DEVICE_7_UUID=gpu-node-2-1\n") == ("gpu-node-2-1",)
    assert (found.spec.version, found.spec.exempt, found.spec.features) == ("1.4.2", (), ())


def test_the_reasons_are_comments(tmp_path: Path) -> None:
    text = write("acme", gpu_draft(PLAIN, with_gpu()), [])
    assert "version: 1.4.2 # the tag of image example.com/acme:v1.4.2" in text
    assert "classes: [gpus] # 6 of 6 devices" in text
    assert "perNode: 3 # node-1: 3, node-2: 3" in text
    assert r"probe: {env: '^GPU_DEVICE_\d+_UUID=(?P<id>[\w-]+)$'}" in text
    assert "gpu-node-1-0" not in text  # the value of a variable may be a secret


def test_open_questions_are_above_their_keys() -> None:
    text = write(
        "acme",
        gpu_draft(PLAIN, with_gpu()),
        [Question("devices.classes", "Is it this one?"), Question("probe", "How?")],
    )
    assert "    # QUESTION: Is it this one?\n    classes: [gpus]" in text
    assert "  # QUESTION: How?\n" in text.partition("  probe:")[0].rpartition("examples:")[2]


def test_devices_have_their_identity_also_if_containers_show_names() -> None:
    made = gpu_draft(PLAIN, sample(GPUS[0], variables={"GPU_DEVICE_0": "gpu-0"}))
    assert made.spec["probe"] == {"env": r"^GPU_DEVICE_\d+=(?P<name>[\w-]+)$"}
    assert made.spec["devices"]["identity"] == {"attribute": "uuid", "scope": "cluster"}


def test_what_was_seen_becomes_features() -> None:
    made = gpu_draft(PLAIN, with_gpu(has_status=True, has_health=True))
    assert made.spec["features"] == ["device-status", "health"]


def test_what_no_cdi_file_has_is_an_exemption() -> None:
    assert gpu_draft(PLAIN, with_gpu()).spec.get("exempt") is None
    made = gpu_draft(PLAIN, replace(with_gpu(), cdi="{}"))
    assert made.spec["exempt"] == ["cdi"]
    assert made.reasons["exempt"] == "GPU_DEVICE_0_UUID comes with a claim, and is in no CDI file."
    unreadable = replace(with_gpu(), cdi=None)
    assert gpu_draft(PLAIN, unreadable).spec.get("exempt") is None


def test_a_driver_that_refuses_a_second_device_may_be_wrong() -> None:
    refused = Sample("node-1", 2, refusal="prepare failed: one device only")
    questions = Questions()
    assert "claim" not in gpu_draft(PLAIN, with_gpu(), refused, questions=questions).spec["devices"]
    assert "Seen: 2 devices: prepare failed" in questions.open[0].text
    confirmed = gpu_draft(PLAIN, with_gpu(), refused, questions=Questions(lambda *_: "yes"))
    assert confirmed.spec["devices"]["claim"] == {"counts": [1]}


def test_a_driver_that_refuses_one_device_accepts_all_of_a_node() -> None:
    one, two = (Sample("node-1", count, refusal="prepare failed: all devices only") for count in (1, 2))
    every = sample(*GPUS[:3], variables={"GPUS": "3"})
    assert gpu_draft(PLAIN, one, two, every).spec["devices"]["claim"] == {"counts": "all"}


def test_a_probe_that_was_not_found_is_asked_for(tmp_path: Path) -> None:
    questions = Questions()
    made = gpu_draft(PLAIN, sample(GPUS[0], cpus="1-2"), questions=questions)
    path = tmp_path / "acme.yaml"
    path.write_text(write("acme", made, questions.open))
    assert (
        "# QUESTION: How does a container show its devices? a claim adds to its container: other Cpus_allowed_list: 1-2"
        in path.read_text()
    )
    assert load_driver_file(path).probe.command == ("env",)


def test_a_use_that_was_refused_is_asked_about() -> None:
    limits = Limits({"shared-claims": "the driver refused it: one pod only"})
    questions = Questions()
    made = gpu_draft(PLAIN, with_gpu(), limits=limits, questions=questions)
    assert made.spec.get("exempt") is None
    text = write("acme", made, questions.open)
    assert "# QUESTION about spec.exempt: Is this excluded by the driver's documentation (shared-claims)" in text
    confirming = Questions(lambda *_: "yes")
    assert gpu_draft(PLAIN, with_gpu(), limits=limits, questions=confirming).spec["exempt"] == ["shared-claims"]


def test_a_use_that_silently_gives_no_device_is_asked_about() -> None:
    questions = Questions()
    containers = {"shared-claims": [PLAIN.contents], "one-request": [with_gpu().contents]}
    gpu_draft(PLAIN, with_gpu(), limits=Limits(containers=containers), questions=questions)
    (question,) = questions.open
    assert "(shared-claims)" in question.text
    assert "shows no device" in question.text


def test_a_container_that_has_a_device_without_referring_to_it_is_asked_about() -> None:
    questions = Questions()
    gpu_draft(PLAIN, with_gpu(), limits=Limits(beside=with_gpu().contents), questions=questions)
    assert "shows gpu-node-1-0" in questions.open[0].text


def test_labels_of_nodes_are_those_of_the_daemonset_or_of_the_nodes_with_devices() -> None:
    labelled = gpu_draft(PLAIN, with_gpu(), pods=daemonset("acme", nodeSelector={"acme.example/gpu": "true"}))
    assert labelled.spec["nodes"] == {"labels": {"acme.example/gpu": "true"}}
    only_one = gpu_draft(PLAIN, with_gpu(), devices=[each for each in GPUS if each.node == "node-1"])
    assert only_one.spec["nodes"] == {"selector": {"kubernetes.io/hostname": "node-1"}}


def test_one_possible_answer_is_no_question() -> None:
    questions = Questions(lambda *_: pytest.fail("asked"))
    assert questions.choose("driver", "Which driver?", ["a"], "a") == "a"
    assert questions.open == []


def test_a_question_is_answered_or_stays_open() -> None:
    assert Questions(lambda _, answers, __: answers[1]).choose("driver", "Which driver?", ["a", "b"], "a") == "b"
    silent = Questions()
    assert silent.choose("driver", "Which driver?", ["a", "b"], "a") == "a"
    assert silent.open == [Question("driver", "Which driver? (a, b)")]
    assert not silent.confirm("exempt", "Is it so?")
    assert Questions(lambda *_: "yes").confirm("exempt", "Is it so?")
