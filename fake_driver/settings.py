"""The driver's settings: each is a flag and an environment variable; the flag takes precedence. `__main__` reads them once.

None of them is a secret: a token is only read from its file.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fake_driver import logs
from fake_driver.errors import ConfigurationError
from fake_driver.name_patterns import DNS_SUBDOMAIN, DRIVER_NAME, UID, matches

ROLES = ("node", "network", "removal")
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def _setting(variable: str, about: str, default: str = "") -> Any:
    return field(default=default, metadata={"variable": variable, "about": about})


@dataclass(frozen=True)
class Settings:
    """All settings of a process, as strings; an empty string means that the setting was not given."""

    node: str = _setting("NODE_NAME", "name of the node that this process serves")
    hardware: str = _setting("FAKE_DRIVER_HARDWARE", "file that describes the simulated hardware (kind Hardware)")
    kinds: str = _setting(
        "FAKE_DRIVER_KINDS",
        "comma-separated kinds of devices that this driver manages; !nic means all except nic; empty means all",
    )
    role: str = _setting(
        "FAKE_DRIVER_ROLE",
        "node serves one node; network publishes the pools that belong to no node and attaches their devices; "
        "removal cleans up a node after the driver was uninstalled",
        "node",
    )
    driver: str = _setting("FAKE_DRIVER_NAME", "name of the driver", "gpu.dra-testbed.example")
    pod_uid: str = _setting("POD_UID", "UID of this pod; part of the sockets' names, for updates without downtime")
    registry: str = _setting(
        "FAKE_DRIVER_REGISTRY", "folder in which the kubelet looks for plugins", "/var/lib/kubelet/plugins_registry"
    )
    plugins: str = _setting("FAKE_DRIVER_PLUGINS", "folder for the data of all plugins", "/var/lib/kubelet/plugins")
    cdi: str = _setting("FAKE_DRIVER_CDI", "folder of CDI files", "/var/run/cdi")
    api_server: str = _setting("FAKE_DRIVER_API_SERVER", "URL of the API server; not needed in a pod")
    token_file: str = _setting("FAKE_DRIVER_TOKEN_FILE", "file with the bearer token", f"{_ACCOUNT}/token")
    ca_file: str = _setting("FAKE_DRIVER_CA_FILE", "file with the API server's CA", f"{_ACCOUNT}/ca.crt")
    probes: str = _setting(
        "FAKE_DRIVER_PROBES", "address of the readiness and liveness probes, for example :8080; empty disables them"
    )
    metadata: str = _setting(
        "FAKE_DRIVER_METADATA",
        "comma-separated versions of the device metadata for containers, for example v1beta1,v1alpha1; "
        "empty writes no metadata",
    )
    log: str = _setting("FAKE_DRIVER_LOG", "format of the log: logfmt or json", "logfmt")
    log_level: str = _setting("FAKE_DRIVER_LOG_LEVEL", "lowest level to log: debug, info, warning or error", "info")
    accepts: str = _setting(
        "FAKE_DRIVER_ACCEPTS",
        "comma-separated limits of the claims that the driver accepts: whole-node (only all ordinary devices of a node), "
        "configured (only devices with configuration); empty accepts all claims",
    )
    faults: str = _setting(
        "FAKE_DRIVER_FAULTS", "comma-separated mutants (deliberate bugs) to run with, for testing the suites"
    )

    @property
    def data(self) -> Path:
        """The folder for this driver's own data."""
        return Path(self.plugins) / self.driver

    @property
    def mutant_names(self) -> tuple[str, ...]:
        """The mutants to run with; empty for a correct driver."""
        return _words(self.faults)

    @property
    def accepted_claims(self) -> tuple[str, ...]:
        """The limits of the claims that the driver accepts; empty for none."""
        return _words(self.accepts)

    @property
    def metadata_versions(self) -> tuple[str, ...]:
        """The versions in which containers get device metadata."""
        return _words(self.metadata)

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The kinds of devices that this driver manages; empty means all."""
        return _words(self.kinds)

    @property
    def probe_address(self) -> tuple[str, int] | None:
        """Host and port for the probes; None if they are disabled."""
        if not self.probes:
            return None
        host, _, port = self.probes.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 2**16):
            raise ConfigurationError(
                f"--probes is {self.probes!r}, but must be an address such as :8080 or 127.0.0.1:8080"
            )
        return host.strip("[]"), int(port)

    def non_empty(self) -> dict[str, str]:
        """Return the settings that have a value."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name))}


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Return the settings from the command line and the environment; raise ConfigurationError if they are invalid."""
    parser = argparse.ArgumentParser(prog="python -m fake_driver", description="A DRA driver for simulated hardware.")
    for one in fields(Settings):
        variable, about = one.metadata["variable"], one.metadata["about"]
        default = environment.get(variable) or one.default
        parser.add_argument(f"--{one.name.replace('_', '-')}", default=default, help=f"{about} (${variable})")
    given = vars(parser.parse_args(arguments))
    if not given["api_server"]:
        given["api_server"] = _in_cluster(environment)
    settings = Settings(**given)
    _check(settings)
    return settings


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Return the settings from the environment alone, unchecked, for programs that run beside the driver in its pod."""
    found = {one.name: environment.get(one.metadata["variable"]) for one in fields(Settings)}
    return Settings(**{name: value for name, value in found.items() if value})


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def _in_cluster(environment: Mapping[str, str]) -> str:
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _check(settings: Settings) -> None:
    is_removal = settings.role == "removal"
    rules = (
        ("node", settings.role == "network" or matches(DNS_SUBDOMAIN, settings.node), "must be the name of a node"),
        ("role", settings.role in ROLES, f"must be one of {', '.join(ROLES)}"),
        ("log", settings.log in logs.FORMATS, f"must be one of {', '.join(logs.FORMATS)}"),
        ("log_level", settings.log_level in logs.LEVELS, f"must be one of {', '.join(logs.LEVELS)}"),
        ("hardware", settings.hardware or is_removal, "must be a file"),
        ("driver", matches(DRIVER_NAME, settings.driver), "must be a DNS subdomain of at most 63 characters"),
        ("pod_uid", not settings.pod_uid or matches(UID, settings.pod_uid), "must be a UID"),
        ("api_server", settings.api_server or is_removal, "must be a URL outside of a pod"),
    )
    variables = {one.name: one.metadata["variable"] for one in fields(Settings)}
    problems = [
        f"--{name.replace('_', '-')} (${variables[name]}) {what}, but is {getattr(settings, name)!r}"
        for name, is_valid, what in rules
        if not is_valid
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))
