"""The hardware that the driver pretends to own: the hardware file is decoded, and the devices of a node are derived from it."""
