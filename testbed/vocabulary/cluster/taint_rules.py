"""The word `taint_rule`: a DeviceTaintRule of the scenario, and what Kubernetes says that it has done with it."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing.observation import Diagnosis, Target, observe
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet

_CONDITION = "EvictionInProgress"
_UNNOTICED = Diagnosis("the controller manager does not look at DeviceTaintRules", by_environment=True)


@dataclass(frozen=True)
class TaintRule:
    """A DeviceTaintRule of the scenario."""

    world: World
    name: str

    @property
    def time_added(self) -> str:
        """Since when the taint is there, as the API server says; '' where it does not."""
        found = self.world.kube.get(RESOURCE, "DeviceTaintRule", self.name)
        return str(found["spec"]["taint"].get("timeAdded", ""))

    def should_be_observed(self) -> TaintRule:
        """Wait until the controller manager has said something of it. The scheduler learns of rules at the same time, and tells nobody."""
        return self._should("be noticed", (), _UNNOTICED)

    def should_report(self, *reasons: str) -> TaintRule:
        """Wait until the controller manager has said one of these of what it evicts because of it."""
        return self._should(f"say {' or '.join(reasons)}", reasons, Diagnosis.none())

    def _should(self, verb: str, reasons: tuple[str, ...], cause: Diagnosis) -> TaintRule:
        def check(rule: Object) -> None:
            found = [each for each in rule.get("status", {}).get("conditions", ()) if each["type"] == _CONDITION]
            said = [each["reason"] for each in found]
            if not said or (reasons and not set(said) & set(reasons)):
                raise NotYet(f"its status says {', '.join(said) or 'nothing'}")

        target = Target(RESOURCE, "DeviceTaintRule", None, self.name)
        observe(self.world.kube, target, check, f"{target} to {verb}", budgets.TAINT_RULE_OBSERVED, lambda: cause)
        return self
