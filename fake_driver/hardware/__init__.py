"""What the driver pretends to own: a description (a file, strict) and the pure function from it to the devices of a node."""
