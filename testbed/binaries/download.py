"""The official downloads: resumed, checked, and given up with a clear reason. A source for fetch.py."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tarfile
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from testbed.binaries.cache import digest
from testbed.binaries.lock import Program
from testbed.binaries.sources import FetchRequest, Unavailable

_ARCHES = ("amd64", "arm64")
_CHUNK = 1 << 18
_refused: dict[str, str] = {}  # sites that this process could not reach, and why: they are not asked again


@dataclass
class Limits:
    """How long a site may be silent (seconds), how slow (bytes a second) once it is judged, how often a cut is mended."""

    connect: float = 5
    read: float = 15
    judged_after: float = 15
    slowest: float = 20_000
    resumes: int = 3


@dataclass
class DownloadSource:
    """Fetches from where upstream publishes, or from DRA_TESTBED_MIRROR (`MIRROR/<host>/<path>`)."""

    word: str = "download"
    limits: Limits = field(default_factory=Limits)
    mirror: str = field(default_factory=lambda: os.environ.get("DRA_TESTBED_MIRROR", "").rstrip("/"))

    def supply(self, order: FetchRequest) -> None:
        """One request per file; an archive that holds several programs is fetched once."""
        if not order.programs[0].upstream.download.url:
            raise Unavailable("upstream publishes no program", expected=True)
        if order.store.arch not in _ARCHES:
            raise Unavailable(f"nothing is published for {order.store.arch}")
        files: dict[tuple[str, str], list[Program]] = {}
        for program in order.programs:
            files.setdefault(self._address(program, order.store.arch), []).append(program)
        failures = []
        for (url, checksum), programs in files.items():
            try:
                self._fetch(url, checksum, programs, order)
            except Unavailable as failed:
                failures.append(str(failed))
        if failures:
            raise Unavailable(
                "; ".join(dict.fromkeys(failures)),
                cure="let this machine reach the site, or set DRA_TESTBED_MIRROR",
            )

    def _address(self, program: Program, arch: str) -> tuple[str, str]:
        official = program.fill(program.upstream.download.url, arch)
        checksum = program.fill(program.upstream.download.checksum, arch, official)
        return self._mirrored(official), self._mirrored(checksum)

    def _mirrored(self, url: str) -> str:
        return f"{self.mirror}/{url.split('://', 1)[1]}" if self.mirror else url

    def _fetch(self, url: str, checksum: str, programs: list[Program], order: FetchRequest) -> None:
        name = url.rsplit("/", 1)[1]
        part = order.store.part(f"{name}-{programs[0].version}")
        wanted = programs[0].upstream.sha256.get(name) or _find_digest(self._text(checksum), name, checksum)
        was_there = part.exists()
        self._body(url, part, order)
        if digest(part) != wanted and was_there:  # the beginning may be of another file; once more, from the start
            part.unlink()
            self._body(url, part, order)
        if digest(part) != wanted:
            part.unlink()
            raise Unavailable(f"{url}: wrong checksum, it should be sha256 {wanted}")
        _hand_over(part, programs, order)

    def _text(self, url: str) -> str:
        with self._answer(url) as response:
            try:
                return response.read(1 << 20).decode(errors="replace")
            except urllib3.exceptions.HTTPError as cut:
                raise Unavailable(f"{url}: {_reason(cut)}") from cut

    def _body(self, url: str, part: Path, order: FetchRequest) -> None:
        """The whole content in `part`, continued where an earlier attempt or process stopped."""
        for left in reversed(range(self.limits.resumes)):
            have = part.stat().st_size if part.exists() else 0
            with self._answer(url, have) as response:
                try:
                    self._write(response, part, have, order)
                except urllib3.exceptions.ReadTimeoutError as stalled:
                    _refused[urlsplit(url).netloc] = why = f"no answer in time after {part.stat().st_size} bytes"
                    raise Unavailable(f"{url}: {why}") from stalled
                except urllib3.exceptions.HTTPError as cut:
                    if not left:
                        raise Unavailable(f"{url}: {_reason(cut)} after {part.stat().st_size} bytes") from cut
                else:
                    return

    def _write(self, response: urllib3.BaseHTTPResponse, part: Path, have: int, order: FetchRequest) -> None:
        """Append when the server continues, else start over; 416 says that nothing is left to add."""
        if response.status == 416:
            return
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        began, received = time.monotonic(), 0
        with part.open("ab" if continued else "wb") as sink:
            while chunk := response.read1(_CHUNK):
                sink.write(chunk)
                received += len(chunk)
                order.step.note(f"{part.name}: {sink.tell() >> 20} MB")
                took = time.monotonic() - began
                if took > self.limits.judged_after and received < took * self.limits.slowest:
                    raise Unavailable(f"{response.url or part.name}: too slow, {received / took / 1000:.1f} kB/s")

    @contextmanager
    def _answer(self, url: str, have: int = 0) -> Iterator[urllib3.BaseHTTPResponse]:
        site = urlsplit(url).netloc
        if site in _refused:
            raise Unavailable(f"{site}: {_refused[site]}")
        headers = {"User-Agent": "dra-testbed"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with _pool(url) as pool:
                response = pool.request(
                    "GET", url, headers=headers, preload_content=False, decode_content=False,
                    timeout=urllib3.Timeout(connect=self.limits.connect, read=self.limits.read),
                    retries=urllib3.Retry(0, redirect=5),
                )  # fmt: skip
                try:
                    _check_status(response.status, url, site)
                    yield response
                finally:
                    response.close()
        except (urllib3.exceptions.MaxRetryError, urllib3.exceptions.TimeoutError) as failed:
            _refused[site] = _reason(failed)
            raise Unavailable(f"{site}: {_refused[site]}") from failed
        except urllib3.exceptions.HTTPError as failed:
            raise Unavailable(f"{url}: {_reason(failed)}") from failed


def _check_status(status: int, url: str, site: str) -> None:
    if status in (401, 403, 407):
        _refused[site] = f"HTTP {status}, the site or a proxy refuses"
        raise Unavailable(f"{site}: {_refused[site]}")
    if status not in (200, 206, 416):
        raise Unavailable(f"{url}: HTTP {status}")


def _hand_over(part: Path, programs: list[Program], order: FetchRequest) -> None:
    with order.store.scratch() as scratch:
        for program in programs:
            file = scratch / program.file
            member = program.fill(program.upstream.download.member, order.store.arch)
            if member:
                _extract(part, member, file)
            else:
                shutil.copyfile(part, file)
            order.keep(program, file, "")
    part.unlink()


def _extract(archive: Path, member: str, into: Path) -> None:
    try:
        with tarfile.open(archive) as packed:
            found = next((info for info in packed if info.name.removeprefix("./") == member and info.isfile()), None)
            content = packed.extractfile(found) if found else None
            if content is None:
                raise Unavailable(f"{archive.name} holds no {member}")
            with into.open("wb") as sink:
                shutil.copyfileobj(content, sink)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as broken:
        raise Unavailable(f"{archive.name} cannot be read: {broken}") from broken


def _find_digest(text: str, name: str, url: str) -> str:
    """The digest of `name` in a published checksum file: lines of `<sha256>  <name>`, or the digest alone."""
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-fA-F]{64})(?:\s+\*?(?:.*/)?(\S+))?\s*", line)
        if match and match[2] in (None, name):
            return match[1].lower()
    raise Unavailable(f"{url} names no sha256 of {name}, and nothing unverified is installed")


def _pool(url: str) -> urllib3.PoolManager:
    """A pool that goes through the proxy of the environment, where one is set for this address."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        return urllib3.ProxyManager(proxy if "://" in proxy else f"http://{proxy}")
    return urllib3.PoolManager()


def _reason(failed: BaseException) -> str:
    """The innermost cause, in a user's words where there are any."""
    cause = getattr(failed, "reason", None) or failed
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        return "the name cannot be resolved"
    if isinstance(cause, urllib3.exceptions.NewConnectionError):  # which counts itself among the time-outs
        return str(cause).rsplit("] ", 1)[-1].lower()
    if isinstance(cause, urllib3.exceptions.TimeoutError):
        return "no answer in time"
    if isinstance(cause, urllib3.exceptions.ProtocolError):
        return "the connection was cut"
    text = str(cause)
    return text.rsplit(": ", 1)[-1] if "Errno" in text else text
