"""`python -m fake_driver.hardware FILE --node NAME`: the ResourceSlices that a driver would publish for a node, without any cluster.

People look at a hardware file with it before they use it; `dra-testbed hardware show` draws what it prints. Ends with 2 where the file is
wrong.
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

# Who has which kinds of devices of one server, as the driver files say.
AS_INSTALLED = {Settings.driver: "!nic", "nic.dra-testbed.example": "nic"}


def main(arguments: Sequence[str]) -> int:
    """Print a list of slices as JSON."""
    parser = argparse.ArgumentParser(prog="fake_driver.hardware", description="The slices that a hardware file means.")
    parser.add_argument("file", type=Path, help="a file of kind Hardware")
    parser.add_argument(
        "--node", action="append", help="name of a node; may be given several times. Without it: node-1"
    )
    parser.add_argument("--driver", help="name of the driver; without it: the two drivers that the manifests install")
    parser.add_argument("--kinds", default="", help="kinds of devices, separated by commas; empty means all")
    given = parser.parse_args(arguments)
    drivers = {given.driver: given.kinds} if given.driver else AS_INSTALLED
    try:
        hardware = hardware_file.read(given.file)
        found = [
            each
            for driver, kinds in drivers.items()
            for each in slices(hardware, given.node or ["node-1"], driver, [kind for kind in kinds.split(",") if kind])
        ]
        require_valid(found, str(given.file))
    except ConfigurationError as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    json.dump(
        {"apiVersion": "v1", "kind": "List", "items": [with_generation(each, 1) for each in found]},
        sys.stdout,
        indent=1,
    )
    return 0


def slices(hardware: Hardware, nodes: Sequence[str], driver: str, kinds: Sequence[str]) -> list[Object]:
    """What would be published on these nodes, and for the network."""
    found: list[Object] = []
    for node in nodes:
        here, *network = pools(hardware, node, kinds)
        found += for_node(driver, Owner(node, ""), here.devices)
    return [*found, *for_network(driver, network)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
