"""Reads answers of an API server, which may be hostile or broken, in bounded time and memory, and checks their shape. For the client."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import urllib3

from testbed.errors import ApiError

Object = dict[str, Any]
MAX_BYTES = 64 * 2**20  # of one answer, of all pages of a list together, or of one watch event
MAX_PAGES = 1000
_CHUNK = 2**16
_QUOTED = 1000
_EQUALITIES = re.compile(r"[^=!,()\s]+=[^=!,()\s]*(,[^=!,()\s]+=[^=!,()\s]*)*")


def read(response: urllib3.BaseHTTPResponse, request: str, seconds: float) -> bytes:
    """Return the body of an answer. Raise ApiError if it is too long, or not complete after so many seconds."""
    deadline, parts, size = time.monotonic() + seconds, list[bytes](), 0
    while part := response.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            _refuse(request, f"the answer is longer than {MAX_BYTES >> 20} MiB")
        if time.monotonic() > deadline:
            _refuse(request, f"the answer was not complete after {seconds:g} s")
    announced = response.headers.get("Content-Length") or ""
    if announced.isdigit() and not response.headers.get("Content-Encoding") and size < int(announced):
        _refuse(request, f"the answer ended after {size} of {announced} bytes")
    return b"".join(parts)


def lines(response: urllib3.BaseHTTPResponse, request: str, seconds: float) -> Iterator[bytes]:
    """Yield the lines of a stream until it ends or the time is over. Raise ApiError for a line that is too long."""
    deadline, rest = time.monotonic() + seconds, b""
    while part := response.read1(_CHUNK):
        *complete, rest = (rest + part).split(b"\n")
        yield from filter(None, complete)
        if len(rest) > MAX_BYTES:
            _refuse(request, f"an event is longer than {MAX_BYTES >> 20} MiB")
        if time.monotonic() > deadline:
            return


def parse(text: str | bytes, request: str) -> Any:
    """Return parsed JSON. Raise ApiError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as broken:
        quoted = text[:_QUOTED].decode(errors="replace") if isinstance(text, bytes) else text[:_QUOTED]
        raise ApiError(request, 0, "", f"the answer is not valid JSON ({broken}): {quoted!r:.200}") from broken


def as_object(answer: Any, request: str) -> Object:
    """Return the answer. Raise ApiError if it is no Kubernetes object with a name."""
    if isinstance(answer, dict):
        metadata = answer.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("name", ""), str) and _maps_are_maps(metadata):
            return answer
    return _refuse(request, f"the answer is no Kubernetes object: {answer!r:.200}")


def items(answer: Any, request: str) -> list[Object]:
    """Return the items of a list. Raise ApiError if the answer is none, or if an item is no object."""
    found = answer.get("items") if isinstance(answer, dict) else None
    if found is None and isinstance(answer, dict) and "items" in answer:  # as an empty list is written by Go programs
        return []
    if not isinstance(found, list):
        _refuse(request, f"the answer is no list of objects: {answer!r:.200}")
    return [as_object(each, request) for each in found]


def next_page(answer: Any) -> str:
    """Return the token of the next page of a list; '' for the last one."""
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    token = metadata.get("continue") if isinstance(metadata, dict) else None
    return token if isinstance(token, str) else ""


def resources(answer: Any, request: str) -> list[Object]:
    """Return the resources of an API version. Raise ApiError if the answer has none, or one without name, kind and scope."""
    found = answer.get("resources") if isinstance(answer, dict) else None
    types = {"name": str, "kind": str, "namespaced": bool}
    for each in found if isinstance(found, list) else [None]:
        if not isinstance(each, dict) or not all(isinstance(each.get(key), kind) for key, kind in types.items()):
            _refuse(request, f"the answer is no list of API resources: {answer!r:.200}")
    return list(found or ())


def groups(answer: Any, request: str) -> list[tuple[str, list[str]]]:
    """Return each API group with its versions, the preferred one first. Raise ApiError if the answer has no groups."""
    try:
        return [
            (
                str(group["name"]),
                list(
                    dict.fromkeys(str(each["groupVersion"]) for each in (group["preferredVersion"], *group["versions"]))
                ),
            )
            for group in answer["groups"]
        ]
    except (KeyError, TypeError):
        return _refuse(request, f"the answer is no list of API groups: {answer!r:.200}")


def selected(found: Iterable[Object], namespace: str | None, selectors: Mapping[str, str]) -> list[Object]:
    """Return the objects that match. A server (or an aggregated API) that ignores selectors must not make us act on other objects.

    Only equalities are checked: `key=value,key=value`.
    """
    labels, fields = (_equalities(selectors.get(name, "")) for name in ("labelSelector", "fieldSelector"))
    return [
        each
        for each in found
        if namespace in (None, "", each["metadata"].get("namespace", namespace))
        and all(_value(each, ("metadata", "labels", key)) == value for key, value in labels)
        and all(_value(each, key.split(".")) == value for key, value in fields)
    ]


def _equalities(selector: str) -> list[tuple[str, str]]:
    if not _EQUALITIES.fullmatch(selector):
        return []
    return [(key, value) for key, _, value in (pair.partition("=") for pair in selector.split(","))]


def _value(each: Any, path: Iterable[str]) -> str:
    for part in path:
        each = each.get(part) if isinstance(each, dict) else None
    if isinstance(each, bool):
        return str(each).lower()
    return "" if each is None else str(each)


def _maps_are_maps(metadata: Object) -> bool:
    return all(isinstance(metadata.get(key) or {}, dict) for key in ("labels", "annotations"))


def _refuse(request: str, why: str) -> NoReturn:
    raise ApiError(request, 0, "", why)
