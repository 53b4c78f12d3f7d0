"""The driver's settings: each is a flag and an environment variable; the flag wins. `__main__` reads them once.

None of them is a secret: the token itself is only ever read from its file.
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
    """All settings, as texts; empty means not given."""

    node: str = _setting("NODE_NAME", "name of the node that this process serves")
    hardware: str = _setting("FAKE_DRIVER_HARDWARE", "file with the hardware to pretend (kind Hardware)")
    kinds: str = _setting(
        "FAKE_DRIVER_KINDS",
        "kinds of devices that are this driver's, separated by commas; !nic means all but nic; empty means all",
    )
    role: str = _setting(
        "FAKE_DRIVER_ROLE",
        "node serves one node; network publishes the pools of no node, and attaches devices; removal tidies a node",
        "node",
    )
    driver: str = _setting("FAKE_DRIVER_NAME", "name of the driver", "gpu.dra-testbed.example")
    pod_uid: str = _setting("POD_UID", "UID of this pod; becomes part of the sockets' names, for updates without a gap")
    registry: str = _setting(
        "FAKE_DRIVER_REGISTRY", "the kubelet's registration folder", "/var/lib/kubelet/plugins_registry"
    )
    plugins: str = _setting("FAKE_DRIVER_PLUGINS", "folder of all plugins' data", "/var/lib/kubelet/plugins")
    cdi: str = _setting("FAKE_DRIVER_CDI", "folder of CDI files", "/var/run/cdi")
    api_server: str = _setting("FAKE_DRIVER_API_SERVER", "URL of the API server; in a pod it is known")
    token_file: str = _setting("FAKE_DRIVER_TOKEN_FILE", "file with the bearer token", f"{_ACCOUNT}/token")
    ca_file: str = _setting("FAKE_DRIVER_CA_FILE", "file with the API server's CA", f"{_ACCOUNT}/ca.crt")
    probes: str = _setting("FAKE_DRIVER_PROBES", "address for readiness and liveness, such as :8080; empty serves none")
    metadata: str = _setting(
        "FAKE_DRIVER_METADATA",
        "versions of device metadata for containers, separated by commas, such as v1beta1,v1alpha1; empty writes none",
    )
    log: str = _setting("FAKE_DRIVER_LOG", "shape of the log's lines: logfmt or json", "logfmt")
    log_level: str = _setting(
        "FAKE_DRIVER_LOG_LEVEL", "least level that is logged: debug, info, warning, error", "info"
    )
    faults: str = _setting("FAKE_DRIVER_FAULTS", "ways in which to be wrong on purpose, separated by commas")

    @property
    def data(self) -> Path:
        """The folder of this driver's own data."""
        return Path(self.plugins) / self.driver

    @property
    def mutant_names(self) -> tuple[str, ...]:
        """The faults that are asked for."""
        return _words(self.faults)

    @property
    def metadata_versions(self) -> tuple[str, ...]:
        """The versions of device metadata that containers get."""
        return _words(self.metadata)

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The kinds of devices that this driver has; none means all."""
        return _words(self.kinds)

    @property
    def probe_address(self) -> tuple[str, int] | None:
        """Where the probes are answered."""
        if not self.probes:
            return None
        host, _, port = self.probes.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 2**16):
            raise ConfigurationError(f"the probes' address {self.probes!r} is not one such as :8080 or 127.0.0.1:8080")
        return host.strip("[]"), int(port)

    def non_empty(self) -> dict[str, str]:
        """All that say something."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name))}


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """The settings from the command line and the environment, checked."""
    parser = argparse.ArgumentParser(prog="fake_driver", description="A DRA driver for hardware that does not exist.")
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
    """What the environment alone says: for programs beside the driver, which need a few of them and have no flags for them."""
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
    problems = [
        f"--{name.replace('_', '-')} (${variable}) {what}, but is {getattr(settings, name)!r}"
        for name, variable, is_right, what in (
            (
                "node",
                "NODE_NAME",
                settings.role == "network" or matches(DNS_SUBDOMAIN, settings.node),
                "must be the name of a node",
            ),
            ("role", "FAKE_DRIVER_ROLE", settings.role in ROLES, f"must be one of {', '.join(ROLES)}"),
            ("log", "FAKE_DRIVER_LOG", settings.log in logs.FORMATS, f"must be one of {', '.join(logs.FORMATS)}"),
            (
                "log_level",
                "FAKE_DRIVER_LOG_LEVEL",
                settings.log_level in logs.LEVELS,
                f"must be one of {', '.join(logs.LEVELS)}",
            ),
            ("hardware", "FAKE_DRIVER_HARDWARE", settings.hardware or settings.role == "removal", "must be a file"),
            (
                "driver",
                "FAKE_DRIVER_NAME",
                matches(DRIVER_NAME, settings.driver),
                "must be a DNS subdomain of at most 63 letters",
            ),
            ("pod_uid", "POD_UID", not settings.pod_uid or matches(UID, settings.pod_uid), "must be a UID"),
            (
                "api_server",
                "FAKE_DRIVER_API_SERVER",
                settings.api_server or settings.role == "removal",
                "must be a URL outside of a pod",
            ),
        )
        if not is_right
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))
