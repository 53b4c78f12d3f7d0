from testbed.onboarding.discovery.class_choice import choose_classes
from testbed.onboarding.discovery.facts import ClusterFacts
from testbed.onboarding.discovery.questions import Question, Questions
from tests.onboarding.discovery.shapes import NIC, NICS, device, device_class

PCI = device(NIC, "node-1", "pci-0000-00-04-0", type="device")


def test_a_driver_without_a_class_gets_one() -> None:
    questions = Questions()
    found, made = choose_classes(ClusterFacts(), NIC, [*NICS, PCI], questions)
    assert made
    assert (made["metadata"]["name"], found.ordinary, found.others) == (NIC, (NIC,), (PCI,))
    assert [each.key for each in questions.open] == ["devices.classes"]


def test_an_existing_class_is_not_overwritten() -> None:
    other = device_class(NIC, "device.driver == 'other.example'")
    _, made = choose_classes(ClusterFacts(classes=(other,)), NIC, NICS, Questions())
    assert made
    assert made["metadata"]["name"] == f"ordinary.{NIC}"


def test_a_class_of_the_driver_is_used() -> None:
    own = device_class("nics", f"device.driver == '{NIC}'")
    assert choose_classes(ClusterFacts(classes=(own,)), NIC, NICS, Questions())[1] is None


def test_a_class_that_could_not_be_evaluated_is_asked_about() -> None:
    strange = device_class("strange", f"device.attributes['{NIC}'].exists(name, name == 'mac')")
    questions = Questions()
    choose_classes(ClusterFacts(classes=(strange,)), NIC, NICS, questions)
    assert questions.open[0] == Question(
        "devices.classes", "The selector of strange could not be evaluated. Does it select ordinary devices?"
    )
