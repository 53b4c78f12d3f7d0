"""`python -m fake_driver.hardware FILE --node NAME`: print the ResourceSlices that drivers would publish for a node, without a cluster.

`dra-testbed hardware show` shows what it prints as a tree or a picture. It exits with 2 if the hardware file is invalid.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fake_driver.devices.model import Hardware
from fake_driver.errors import ConfigurationError
from fake_driver.hardware import hardware_file
from fake_driver.hardware.pools import pools
from fake_driver.publishing.planner import with_generation
from fake_driver.publishing.slices import Object, Owner, for_network, for_node
from fake_driver.publishing.validation import require_valid
from fake_driver.settings import Settings

# The kinds of each driver, as in the driver files.
KINDS_BY_DRIVER = {Settings.driver: "!nic", "nic.dra-testbed.example": "nic"}


def main(arguments: Sequence[str]) -> int:
    """Print a list of slices as JSON and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="fake_driver.hardware",
        description="Print the ResourceSlices that drivers would publish for a hardware file, as JSON.",
    )
    parser.add_argument("file", type=Path, help="the hardware file")
    parser.add_argument("--node", action="append", help="name of a node; can be repeated (default: node-1)")
    parser.add_argument("--driver", help="name of the driver (default: the two drivers that the manifests install)")
    parser.add_argument(
        "--kinds",
        default="",
        help="kinds of devices of --driver, separated by commas; `!nic` means all but nic (default: all)",
    )
    given = parser.parse_args(arguments)
    drivers = {given.driver: given.kinds} if given.driver else KINDS_BY_DRIVER
    try:
        hardware = hardware_file.read(given.file)
        found = [
            each
            for driver, kinds in drivers.items()
            for each in slices(hardware, given.node or ["node-1"], driver, [kind for kind in kinds.split(",") if kind])
        ]
        require_valid(found, str(given.file))
    except ConfigurationError as invalid:
        sys.stderr.write(f"{invalid}\n")
        return 2
    json.dump(
        {"apiVersion": "v1", "kind": "List", "items": [with_generation(each, 1) for each in found]},
        sys.stdout,
        indent=1,
    )
    return 0


def slices(hardware: Hardware, nodes: Sequence[str], driver: str, kinds: Sequence[str]) -> list[Object]:
    """Return the slices that a driver publishes for these nodes and for the network pools."""
    found: list[Object] = []
    for node in nodes:
        here, *network = pools(hardware, node, kinds)
        found += for_node(driver, Owner(node, ""), here.devices)
    return [*found, *for_network(driver, network)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
