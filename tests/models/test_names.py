"""Valid names, and the messages for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from testbed.errors import UsageError
from testbed.models.names import DriverName, LabelName, Selector, check_name, published_name, safe_name, value_of


@pytest.mark.parametrize("name", ["a", "gpu-2", "0", "a" * 32])
def test_plain_names_are_accepted(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("", "must not be empty"),
        ("../etc", "is a path"),
        ("/tmp/x", "is a path"),
        ("a/b", "is a path"),
        ("a\\b", "is a path"),
        (".", "is a path"),
        ("~", "is a path"),
        ("a" * 33, "has 33 characters"),
        ("a" * 5000, r"is '[a]{57}\.\.\.', which has 5000 characters"),
        ("Gpu", "must be lower case: gpu"),
        ("a_b", "letters, digits and dashes"),
        ("-a", "letters, digits and dashes"),
        ("a-", "letters, digits and dashes"),
        ("a b", "letters, digits and dashes"),
        ("a\n", "letters, digits and dashes"),
        ("ä", "letters, digits and dashes"),
        ("--help", "letters, digits and dashes"),
    ],
)
def test_other_names_are_refused_with_a_reason(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        check_name(name)


@pytest.mark.parametrize("name", ["gpu.example.com", "a" * 63, "gpu"])
def test_names_of_drivers_may_have_dots(name: str) -> None:
    assert TypeAdapter(DriverName).validate_python(name) == name


@pytest.mark.parametrize("name", ["", "gpu_x", "GPU.example.com", ".gpu", "gpu..com", "a" * 64, "gpu/x", "gpu\n"])
def test_other_names_of_drivers_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(DriverName).validate_python(name)


def test_names_of_namespaces_have_no_dots() -> None:
    with pytest.raises(ValidationError, match="must be a DNS label"):
        TypeAdapter(LabelName).validate_python("a.b")


@pytest.mark.parametrize(
    "text", ["app=x", "app==x", "a.b/c!=d,e", "!e", "env in (a, b),app", "env notin (a)", "app= x"]
)
def test_label_selectors_are_accepted(text: str) -> None:
    assert TypeAdapter(Selector).validate_python(text) == text


@pytest.mark.parametrize("text", ["", "app=x,", "=x", "app in a", "app=a b", "app:x", "a,,b"])
def test_an_invalid_label_selector_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="label selector"):
        TypeAdapter(Selector).validate_python(text)


@pytest.mark.parametrize("name", ["pod-1", "a", "gpu.example.com", "A_b", "x" * 200])
def test_safe_names_are_unchanged(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "/etc", "a/b", ".hidden", "a\0b", "a..b", "x" * 400, "a\n"]
)
def test_names_that_are_paths_are_changed_to_stay_in_the_folder(name: str, tmp_path: Path) -> None:
    safe = safe_name(name)
    assert (tmp_path / safe).resolve().parent == tmp_path.resolve()
    assert len(safe) < 200
    (tmp_path / f"{safe}.log").write_text("")


@pytest.mark.parametrize("name", ["memory", "gpu.example/memory"])
@pytest.mark.parametrize("published", ["memory", "gpu.example/memory"])
def test_a_name_without_a_domain_and_one_with_that_of_the_driver_mean_the_same(name: str, published: str) -> None:
    found = {"other.example/memory": 1, published: 2}
    assert published_name(name, found, "gpu.example") == published
    assert value_of(name, found, "gpu.example") == 2
    assert value_of("other.example/memory", found, "gpu.example") == 1
    assert published_name("cores", found, "gpu.example") is None
    assert value_of(name, {"other.example/memory": 1}, "gpu.example") is None
