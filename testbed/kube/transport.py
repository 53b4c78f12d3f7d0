"""Sends requests to one API server as one user: TLS, tokens and proxies of the official client, and headers for impersonation.

Used by the client and by `execution`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import urllib3
from kubernetes import client as official
from kubernetes import config as official_config

from testbed.errors import UsageError
from testbed.kube import credential_plugins, impersonation
from testbed.kube.kubeconfig import Access

_EARLY = timedelta(seconds=10)  # credentials are renewed early, because a request takes time


class Transport:
    """A connection to an API server as one user. Creating one runs the credential plugin, if there is one."""

    def __init__(self, access: Access, user_agent: str) -> None:
        self._access, self._user_agent = access, user_agent
        self._impersonation = impersonation.headers(access.user, access.source)
        self._renewing = threading.Lock()
        self._connect()

    @property
    def configuration(self) -> Any:
        """Return the official client's configuration with valid credentials."""
        with self._renewing:
            if self._expiry and datetime.now(UTC) >= self._expiry - _EARLY:
                self._connect()
        return self._configuration

    def headers(self, more: Sequence[tuple[str, str]] = ()) -> urllib3.HTTPHeaderDict:
        """Return the headers of every request: user agent, credentials, impersonation. `more` may impersonate another user."""
        if self._impersonation and any(name.startswith("Impersonate-") for name, _ in more):
            what = f"kubeconfig {self._access.source} impersonates {self._access.user['as']}"
            raise UsageError(f"{what}, so no other user can be impersonated", hint="use a user without `as`")
        result = urllib3.HTTPHeaderDict({"User-Agent": self._user_agent})
        for name, value in itertools.chain(self._impersonation, more):
            result.add(name, value)
        result.update({each["key"]: each["value"] for each in self.configuration.auth_settings().values()})
        return result

    def send(self, method: str, path: str, **how: Any) -> urllib3.BaseHTTPResponse:
        """Send one request without retries, and return the response. The caller releases the connection."""
        url = self.configuration.host + path
        answer: urllib3.BaseHTTPResponse = self.pool.request(method, url, retries=False, **how)
        return answer

    def _connect(self) -> None:
        access, self._expiry = credential_plugins.resolve_credentials(self._access)
        self._configuration = type.__call__(official.Configuration)  # not a default that other code may have set
        try:
            official_config.load_kube_config_from_dict(
                access.loadable(), client_configuration=self._configuration, persist_config=False
            )
        except official_config.ConfigException as bad:
            raise UsageError(f"kubeconfig {access.source}: {bad}") from bad
        self._configuration.retries = False
        _refuse_socks(self._configuration, self._access)
        self.pool = official.rest.RESTClientObject(self._configuration).pool_manager


def _refuse_socks(configuration: Any, access: Access) -> None:
    proxy = str(configuration.proxy or "")
    if not proxy.lower().startswith("socks"):
        return
    if official.rest.should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return
    kind = proxy.partition("://")[0]
    in_file = access.content["clusters"][0]["cluster"].get("proxy-url")
    source = f"kubeconfig {access.source}" if in_file else "HTTPS_PROXY"
    raise UsageError(
        f"{source} sets a {kind} proxy for {access.server}, which is not supported",
        hint="use an http:// proxy, or forward a port: ssh -L 6443:SERVER:6443 HOST, then server: https://127.0.0.1:6443",
    )
