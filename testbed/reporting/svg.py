"""Draws the topology of devices as SVG: nested boxes for nodes, NUMA nodes, PCIe roots and devices. Pure.

`dra-testbed hardware show -o svg` prints it; docs/hardware.svg is an example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from testbed.reporting.topology import Location, PublishedDevice, by_root, group_similar

_GAP, _LINE, _LETTER = 10, 17, 7.6
_MOST_SIMILAR = 4  # devices that are drawn one by one
_STYLE = (
    "text{font:13px sans-serif;fill:#1c2733}.title{font-weight:600}"
    "rect{stroke:#8fa3b8;rx:6}.location{fill:#f4f7fa}.numa{fill:#e6edf4}.root{fill:#d5e3f0}"
    ".device{fill:#fff}.tainted{fill:#fbe0de;stroke:#c0392b}"
)


@dataclass(frozen=True)
class Box:
    """A titled box with lines of text and inner boxes, side by side (`across`) or stacked."""

    title: str
    kind: str
    lines: tuple[str, ...] = ()
    inner: tuple[Box, ...] = ()
    across: bool = False

    @property
    def width(self) -> float:
        """Return the width that text and inner boxes need."""
        text = max(len(line) for line in (self.title, *self.lines)) * _LETTER
        widths = [box.width for box in self.inner] or [0.0]
        inner = sum(widths) + _GAP * (len(widths) - 1) if self.across else max(widths)
        return max(text, inner) + 2 * _GAP

    @property
    def height(self) -> float:
        """Return the height that text and inner boxes need."""
        heights = [box.height for box in self.inner] or [0.0]
        inner = max(heights) if self.across else sum(heights) + _GAP * (len(heights) - 1)
        return _LINE * (1 + len(self.lines)) + inner + (2 * _GAP if self.inner else _GAP)


def draw(locations: Iterable[Location]) -> str:
    """Return the SVG of locations."""
    everything = Box("", "", inner=tuple(map(_location_box, locations)))
    body = "\n".join(_elements(everything.inner, _GAP, _GAP, across=False))
    width, height = everything.width, sum(box.height + _GAP for box in everything.inner) + _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">\n'
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _location_box(location: Location) -> Box:
    inner = tuple(
        Box(f"NUMA node {numa}" if numa is not None else "no NUMA node", "numa", inner=tuple(_roots(devices)))
        for numa, devices in location.by_numa()
    )
    return Box(f"{location.name}  ({location.scope or 'node'})", "location", inner=inner, across=True)


def _roots(devices: list[PublishedDevice]) -> Iterable[Box]:
    for root, below in by_root(devices):
        boxes = tuple(_devices(below))
        if root:
            yield Box(f"PCIe root {root}", "root", inner=boxes, across=True)
        else:
            yield from boxes


def _devices(devices: Sequence[PublishedDevice]) -> Iterable[Box]:
    names = {device.name for device in devices}
    parts = {name: [device for device in devices if device.parent == name] for name in names}
    for similar in group_similar([device for device in devices if device.parent not in names]):
        if len(similar) > _MOST_SIMILAR and not any(parts[device.name] for device in similar):
            yield _device(f"{similar[0].name} … {similar[-1].name}", similar[0], [])
        else:
            yield from (_device(device.name, device, parts[device.name]) for device in similar)


def _device(name: str, device: PublishedDevice, parts: Sequence[PublishedDevice]) -> Box:
    counts = Counter(str(part.attributes.get("profile", "part")) for part in parts)
    lines = (
        str(device.attributes.get("model", "")),
        *(f"{key} {value}" for key, value in device.capacity.items()),
        *(f"{count} × {profile}" for profile, count in counts.items()),  # noqa: RUF001 - a multiplication sign
        *device.taints,
    )
    return Box(name, "tainted" if device.taints else "device", tuple(filter(None, lines)))


def _elements(boxes: Iterable[Box], x: float, y: float, *, across: bool) -> Iterable[str]:
    for box in boxes:
        yield f'<rect class="{box.kind}" x="{x:.0f}" y="{y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}"/>'
        for number, line in enumerate((box.title, *box.lines)):
            style = ' class="title"' if number == 0 else ""
            yield f'<text{style} x="{x + _GAP:.0f}" y="{y + _LINE * (number + 1):.0f}">{escape(line)}</text>'
        yield from _elements(box.inner, x + _GAP, y + _LINE * (1 + len(box.lines)) + _GAP, across=box.across)
        if across:
            x += box.width + _GAP
        else:
            y += box.height + _GAP
