"""Downloads programs from upstream's sites: resumes, verifies checksums, gives up slow sites. A source for `fetch`."""

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

ARCHES = ("amd64", "arm64")
_CHUNK = 1 << 18
_unreachable: dict[str, str] = {}  # sites that this process could not reach, with the reason: they are not tried again


@dataclass
class Limits:
    """Timeouts in seconds, the minimum speed in bytes per second after a grace period, and how often a download is resumed."""

    connect: float = 5
    read: float = 15
    grace: float = 15
    min_speed: float = 20_000
    max_resumes: int = 3


@dataclass
class DownloadSource:
    """Downloads from upstream's sites, or from DRA_TESTBED_MIRROR (`MIRROR/<host>/<path>`)."""

    name: str = "download"
    limits: Limits = field(default_factory=Limits)
    mirror: str = field(default_factory=lambda: os.environ.get("DRA_TESTBED_MIRROR", "").rstrip("/"))

    def fetch(self, request: FetchRequest) -> None:
        """Download the requested programs. An archive with several of them is downloaded once."""
        if not request.programs[0].upstream.download.url:
            raise Unavailable("upstream publishes no binaries", expected=True)
        if request.store.arch not in ARCHES:
            raise Unavailable(f"upstream publishes no binaries for {request.store.arch}")
        files: dict[str, list[Program]] = {}
        for program in request.programs:
            files.setdefault(program.url(request.store.arch), []).append(program)
        failures = []
        for programs in files.values():
            try:
                _cache(self.verified(programs[0], request.store.arch, request), programs, request)
            except Unavailable as failed:
                failures.append(str(failed))
        if failures:
            raise Unavailable(
                "; ".join(dict.fromkeys(failures)),
                hint="allow access to the site, or set DRA_TESTBED_MIRROR",
            )

    @property
    def _mirror_is_trustworthy(self) -> bool:
        """Return True if nothing on the way can change files without a digest: https, or a server on this host."""
        address = urlsplit(self.mirror)
        return not self.mirror or address.scheme == "https" or address.hostname in ("localhost", "127.0.0.1", "::1")

    def _mirrored(self, url: str) -> str:
        return f"{self.mirror}/{url.split('://', 1)[1]}" if self.mirror else url

    def verified(self, program: Program, arch: str, request: FetchRequest) -> Path:
        """Download the file that contains a program. Raise Unavailable if it does not match the locked digest or the site's checksum."""
        official = program.url(arch)
        url, name = self._mirrored(official), official.rsplit("/", 1)[1]
        part = request.store.partial_download(f"{name}-{program.version}-{arch}")
        wanted = program.pinned(arch) or self._published_digest(program, arch)
        is_resumed = part.exists()
        self._download(url, part, request)
        if digest(part) != wanted and is_resumed:  # the earlier part may be of another file: start over
            part.unlink()
            self._download(url, part, request)
        if digest(part) != wanted:
            part.unlink()
            raise Unavailable(f"{url}: wrong checksum, expected sha256 {wanted}")
        return part

    def _published_digest(self, program: Program, arch: str) -> str:
        official = program.url(arch)
        name = official.rsplit("/", 1)[1]
        if not self._mirror_is_trustworthy:
            raise Unavailable(
                f"{name} has no sha256 in the lock file, and the mirror {self.mirror} is not https: the file could be replaced on the way"
            )
        checksum = self._mirrored(program.expand(program.upstream.download.checksum, arch, official))
        return _find_digest(self._text(checksum), name, checksum)

    def _text(self, url: str) -> str:
        with self._get(url) as response:
            try:
                return response.read(1 << 20).decode(errors="replace")
            except urllib3.exceptions.HTTPError as cut:
                raise Unavailable(f"{url}: {_reason(cut)}") from cut

    def _download(self, url: str, part: Path, request: FetchRequest) -> None:
        """Download a file into `part`, and continue where an earlier attempt or process stopped."""
        for left in reversed(range(self.limits.max_resumes)):
            have = part.stat().st_size if part.exists() else 0
            with self._get(url, have) as response:
                try:
                    self._write(response, part, have, request)
                except urllib3.exceptions.ReadTimeoutError as stalled:
                    reason = f"timed out after {part.stat().st_size} bytes"
                    _unreachable[urlsplit(url).netloc] = reason
                    raise Unavailable(f"{url}: {reason}") from stalled
                except urllib3.exceptions.HTTPError as cut:
                    if not left:
                        raise Unavailable(f"{url}: {_reason(cut)} after {part.stat().st_size} bytes") from cut
                else:
                    return

    def _write(self, response: urllib3.BaseHTTPResponse, part: Path, have: int, request: FetchRequest) -> None:
        """Append to the file if the server continues it, otherwise start over. Status 416 means that the file is complete."""
        if response.status == 416:
            return
        continued = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        began, received = time.monotonic(), 0
        with part.open("ab" if continued else "wb") as sink:
            while chunk := response.read1(_CHUNK):
                sink.write(chunk)
                received += len(chunk)
                request.step.note(f"{part.name}: {sink.tell() >> 20} MB")
                took = time.monotonic() - began
                if took > self.limits.grace and received < took * self.limits.min_speed:
                    raise Unavailable(f"{response.url or part.name}: too slow, {received / took / 1000:.1f} kB/s")

    @contextmanager
    def _get(self, url: str, have: int = 0) -> Iterator[urllib3.BaseHTTPResponse]:
        site = urlsplit(url).netloc
        if site in _unreachable:
            raise Unavailable(f"{site}: {_unreachable[site]}")
        headers = {"User-Agent": "dra-testbed"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with _pool(url) as pool:
                response = pool.request(
                    "GET", url, headers=headers, preload_content=False, decode_content=False,
                    timeout=urllib3.Timeout(connect=self.limits.connect, read=self.limits.read),
                    retries=urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=5),
                )  # fmt: skip
                try:
                    _check_status(response.status, url, site)
                    _check_redirects(response, url)
                    yield response
                finally:
                    response.close()
        except (urllib3.exceptions.MaxRetryError, urllib3.exceptions.TimeoutError) as failed:
            _unreachable[site] = _reason(failed)
            raise Unavailable(f"{site}: {_unreachable[site]}") from failed
        except urllib3.exceptions.HTTPError as failed:
            raise Unavailable(f"{url}: {_reason(failed)}") from failed


def _check_status(status: int, url: str, site: str) -> None:
    if status in (401, 403, 407):
        _unreachable[site] = f"HTTP {status}: refused by the site or a proxy"
        raise Unavailable(f"{site}: {_unreachable[site]}")
    if status not in (200, 206, 416):
        raise Unavailable(f"{url}: HTTP {status}")


def _check_redirects(response: urllib3.BaseHTTPResponse, url: str) -> None:
    """Raise Unavailable if an address with https leads to one without, because the file or its checksum could be replaced on the way."""
    passed = response.retries.history if response.retries else ()
    if url.startswith("https:") and any((each.redirect_location or "").startswith("http:") for each in passed):
        raise Unavailable(f"{url}: redirects to an address without https")


def _cache(part: Path, programs: list[Program], request: FetchRequest) -> None:
    with request.store.scratch() as scratch:
        for program in programs:
            file = scratch / program.file
            member = program.expand(program.upstream.download.member, request.store.arch)
            if member:
                _extract(part, member, file)
            else:
                shutil.copyfile(part, file)
            request.add_to_cache(program, file, "")
    part.unlink()


def _extract(archive: Path, member: str, into: Path) -> None:
    try:
        with tarfile.open(archive) as packed:
            found = next((info for info in packed if info.name.removeprefix("./") == member and info.isfile()), None)
            content = packed.extractfile(found) if found else None
            if content is None:
                raise Unavailable(f"{archive.name} does not contain {member}")
            with into.open("wb") as sink:
                shutil.copyfileobj(content, sink)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as broken:
        raise Unavailable(f"{archive.name} cannot be read: {broken}") from broken


def _find_digest(text: str, name: str, url: str) -> str:
    """Return the digest of `name` in a checksum file: lines of `<sha256>  <name>`, or only a digest."""
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-fA-F]{64})(?:\s+\*?(?:.*/)?(\S+))?\s*", line)
        if match and match[2] in (None, name):
            return match[1].lower()
    raise Unavailable(f"{url} has no sha256 of {name}, and unverified files are not used")


def _pool(url: str) -> urllib3.PoolManager:
    """Return a connection pool that uses the environment's proxy for this address, if one is set."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        return urllib3.ProxyManager(proxy if "://" in proxy else f"http://{proxy}")
    return urllib3.PoolManager()


def _reason(failed: BaseException) -> str:
    """Return the innermost cause of a failed request."""
    cause = getattr(failed, "reason", None) or failed
    if isinstance(cause, urllib3.exceptions.NameResolutionError):
        return "the host name cannot be resolved"
    if isinstance(cause, urllib3.exceptions.NewConnectionError):  # a subclass of TimeoutError
        return str(cause).rsplit("] ", 1)[-1].lower()
    if isinstance(cause, urllib3.exceptions.TimeoutError):
        return "timed out"
    if isinstance(cause, urllib3.exceptions.ProtocolError):
        return "the connection was lost"
    text = str(cause)
    return text.rsplit(": ", 1)[-1] if "Errno" in text else text
