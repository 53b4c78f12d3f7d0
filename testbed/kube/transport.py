"""The way to one API server as one user: the official client's TLS, tokens and proxies, and in whose name each request is made.

For Kube and its way into containers.
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

_EARLY = timedelta(seconds=10)  # credentials are renewed a moment before they end: a request takes its time


class Transport:
    """Cheap to make, apart from a credential plugin, which is asked at once."""

    def __init__(self, where: Access, user_agent: str) -> None:
        self._where, self._user_agent = where, user_agent
        self._names = impersonation.headers(where.user, where.source)
        self._renewing = threading.Lock()
        self._connect()

    @property
    def configuration(self) -> Any:
        """What the official client knows of the server, with credentials that hold."""
        with self._renewing:
            if self._end and datetime.now(UTC) >= self._end - _EARLY:
                self._connect()
        return self._configuration

    def headers(self, more: Sequence[tuple[str, str]] = ()) -> urllib3.HTTPHeaderDict:
        """What every request carries, however it is made: who we are, and in whose name. `more` may be another name."""
        if self._names and any(name.startswith("Impersonate-") for name, _ in more):
            what = f"kubeconfig {self._where.source} says as: {self._where.user['as']}"
            raise UsageError(f"{what}, and so nothing can be done in another name", hint="use a user without as")
        made = urllib3.HTTPHeaderDict({"User-Agent": self._user_agent})
        for name, value in itertools.chain(self._names, more):
            made.add(name, value)
        made.update({each["key"]: each["value"] for each in self.configuration.auth_settings().values()})
        return made

    def send(self, method: str, path: str, **how: Any) -> urllib3.BaseHTTPResponse:
        """One request, once: retrying belongs to whoever waits, with a budget. The caller gives the connection back."""
        url = self.configuration.host + path
        answer: urllib3.BaseHTTPResponse = self.pool.request(method, url, retries=False, **how)
        return answer

    def _connect(self) -> None:
        where, self._end = credential_plugins.resolve_credentials(self._where)
        self._configuration = type.__call__(official.Configuration)  # and not whatever somebody made the default
        try:
            official_config.load_kube_config_from_dict(
                where.loadable(), client_configuration=self._configuration, persist_config=False
            )
        except official_config.ConfigException as bad:
            raise UsageError(f"kubeconfig {where.source}: {bad}") from bad
        self._configuration.retries = False
        _refuse_socks(self._configuration, self._where)
        self.pool = official.rest.RESTClientObject(self._configuration).pool_manager


def _refuse_socks(configuration: Any, where: Access) -> None:
    proxy = str(configuration.proxy or "")
    if not proxy.lower().startswith("socks"):
        return
    if official.rest.should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return
    kind = proxy.partition("://")[0]
    whose = f"kubeconfig {where.source}" if where.content["clusters"][0]["cluster"].get("proxy-url") else "HTTPS_PROXY"
    raise UsageError(
        f"{whose} leads to {where.server} through a {kind} proxy, which is not supported here",
        hint="an http:// proxy is, and so is a forwarded port: ssh -L 6443:SERVER:6443 HOST, then server: https://127.0.0.1:6443",
    )
