"""DeviceTaintRules of a scenario and the controller manager's status of them."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.kube.client import Object
from testbed.vocabulary import budgets
from testbed.vocabulary.observing.observation import Diagnosis, Target, observe
from testbed.vocabulary.world import RESOURCE, World
from testbed.waiting import NotYet

_CONDITION = "EvictionInProgress"
_NOT_OBSERVED = Diagnosis("the controller manager does not process DeviceTaintRules", by_environment=True)


@dataclass(frozen=True)
class TaintRule:
    """A DeviceTaintRule of the scenario."""

    world: World
    name: str

    @property
    def time_added(self) -> str:
        """Return when the taint was added, as the API server sets it, or ''."""
        found = self.world.kube.get(RESOURCE, "DeviceTaintRule", self.name)
        return str(found["spec"]["taint"].get("timeAdded", ""))

    def should_be_observed(self) -> TaintRule:
        """Wait until the controller manager has reported a status. The scheduler, which reports none, gets rules at the same time."""
        return self._should("be observed", (), _NOT_OBSERVED)

    def should_report(self, *reasons: str) -> TaintRule:
        """Wait until the controller manager has reported one of these reasons for the progress of evictions."""
        return self._should(f"report {' or '.join(reasons)}", reasons, Diagnosis.none())

    def _should(self, verb: str, reasons: tuple[str, ...], cause: Diagnosis) -> TaintRule:
        def check(rule: Object) -> None:
            found = [each for each in rule.get("status", {}).get("conditions", ()) if each["type"] == _CONDITION]
            reported = [each["reason"] for each in found]
            if not reported or (reasons and not set(reported) & set(reasons)):
                raise NotYet(f"reasons of {_CONDITION}: {', '.join(reported) or 'none'}")

        target = Target(RESOURCE, "DeviceTaintRule", None, self.name)
        observe(self.world.kube, target, check, f"{target} to {verb}", budgets.TAINT_RULE_OBSERVED, lambda: cause)
        return self
