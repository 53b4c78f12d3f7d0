"""A wrong driver whose environment, logs, configuration, pods and events contain random credentials. Used by test_run.py."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from testbed import folders

_BASE = folders.data("manifests") / "drivers/mutants/fake-gpu-shares-one-device.yaml"
_COMMAND = "command: [python3, -m, fake_driver]"
_SELECTORS = "spec:\n  selectors:\n"
# The pods and events of tests get credentials from the API server. A policy cannot change annotations that are not there, hence two cases.
_POLICIES = """
apiVersion: v1
kind: Secret
metadata: {name: license, namespace: {{ namespace }}}
stringData: {harmless: STORED}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: canaries-in-pods}
spec:
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchExpressions: [{key: dra-testbed.example/requirement, operator: Exists}]}
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [0, 1, 2, 3].filter(i, i < size(object.spec.containers) && !has(object.spec.containers[i].env))
        .map(i, JSONPatch{op: 'add', path: '/spec/containers/' + string(i) + '/env',
          value: [Object.spec.containers.env{name: 'DB_PASSWORD', value: 'VARIABLE'}]})
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [0, 1, 2, 3].filter(i, i < size(object.spec.containers) && has(object.spec.containers[i].command)
          && size(object.spec.containers[i].command) == 3)
        .map(i, JSONPatch{op: 'replace', path: '/spec/containers/' + string(i) + '/command/2',
          value: 'env; ' + object.spec.containers[i].command[2]})
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        has(object.metadata.annotations)
        ? [JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('vendor.example/api-key'), value: 'ANNOTATION'}]
        : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'vendor.example/api-key': 'ANNOTATION'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: canaries-in-pods}
spec: {policyName: canaries-in-pods}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: canaries-in-events}
spec:
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchExpressions: [{key: dra-testbed.example/requirement, operator: Exists}]}
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [events]}
  matchConditions:
  - {name: has-message, expression: has(object.message)}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: 'replace', path: '/message', value: object.message + ' (https://robot:ERROR@registry.example/v2)'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: canaries-in-events}
spec: {policyName: canaries-in-events}
"""


def _random() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True)
class Canaries:
    """The credentials of one run. The redactor knows none of them in advance; the run can read the Secret."""

    variable: str = field(default_factory=_random)  # of containers, which their logs and the probe print
    log: str = field(default_factory=_random)  # of the driver
    parameter: str = field(default_factory=_random)  # opaque, in the DeviceClass
    error: str = field(default_factory=_random)  # in messages of events
    annotation: str = field(default_factory=_random)
    stored: str = field(default_factory=_random)  # in a Secret, and under a harmless name in the log
    harness: str = field(default_factory=_random)  # in the environment of `dra-testbed run`

    @property
    def all(self) -> list[str]:
        """Return all values."""
        return list(vars(self).values())

    def driver_file(self, into: Path) -> Path:
        """Write the driver file and the manifests with the canaries; return the driver file."""
        content = yaml.safe_load(_BASE.read_text())
        install = content["spec"]["install"]
        manifests = [(_BASE.parent / each).resolve() for each in install["manifests"]]
        install["variablesFromFiles"] = {
            name: str((_BASE.parent / each).resolve()) for name, each in install["variablesFromFiles"].items()
        }
        install["manifests"] = [self._policies(into), *(self._changed(each, into) for each in manifests[1:])]
        install["manifests"].insert(0, str(manifests[0]))  # the namespace
        file = into / "driver.yaml"
        file.write_text(yaml.safe_dump(content))
        return file

    def _policies(self, into: Path) -> str:
        text = _POLICIES
        for word in ("variable", "annotation", "error", "stored"):
            text = text.replace(word.upper(), getattr(self, word))
        (into / "canaries.yaml").write_text(text)
        return str(into / "canaries.yaml")

    def _changed(self, manifest: Path, into: Path) -> str:
        """Return a manifest of the fake driver with canaries, or the manifest itself where none has a place."""
        line = f"api_token={self.log} harmless {self.stored}"
        # Evidence has the driver's log since the test began, so the line is printed every second.
        prints = f"[print('{line}', flush=True) or time.sleep(1) for _ in iter(int, 1)]"
        starts = "os.execvp('python3', ['python3', '-m', 'fake_driver'])"
        program = f"import os, time; {prints} if os.fork() == 0 else {starts}"
        parameters = f"{{apiVersion: vendor.example/v1, kind: License, clientSecret: {self.parameter}}}"
        config = f"  config: [{{opaque: {{driver: other.vendor.example, parameters: {parameters}}}}}]\n"
        text = manifest.read_text()
        changed = text.replace(_COMMAND, f'command: [python3, -c, "{program}"]')
        changed = changed.replace(_SELECTORS, f"spec:\n{config}  selectors:\n", 1)
        if changed == text or manifest.name == "network.yaml":  # which imports a file beside it
            return str(manifest)
        (into / manifest.name).write_text(changed)
        return str(into / manifest.name)
