"""Write and read the few Protocol Buffers that NRI needs, by their field numbers. Used by `nri_plugin` and its tests."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Return a message with these fields: numbers with their values. A message within a message is bytes."""
    return b"".join(_field(number, value) for number, value in fields)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and values of the fields of a message."""
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        value: int | bytes
        if tag & 7 == _VARINT:
            value, position = _read_varint(data, position)
        else:
            size, position = _read_varint(data, position) if tag & 7 == _BYTES else (_SIZES[tag & 7], position)
            value, position = data[position : position + size], position + size
        yield tag >> 3, value


def texts(data: bytes, number: int) -> list[str]:
    """Return the strings in a field of a message."""
    return [value.decode() for found, value in fields(data) if found == number and isinstance(value, bytes)]


def parts(data: bytes, number: int) -> list[bytes]:
    """Return the messages in a field of a message."""
    return [value for found, value in fields(data) if found == number and isinstance(value, bytes)]


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value, shift, position = value | (byte & 0x7F) << shift, shift + 7, position + 1
        if byte < 0x80:
            return value, position
