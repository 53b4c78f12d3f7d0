"""A DRA driver for simulated hardware: it publishes, prepares and unprepares the devices that a YAML file describes.

It is a complete driver and independent of the testbed. It runs on any cluster, as a pod or as a process on a node.

Rules of this package:
* Decide in pure functions, then act. Reading a hardware file, `preparing/claims`, `preparing/inventory` and `publishing/slices` do no I/O.
* Every file is named after the claim's UID, so repeating a call is harmless and a restart needs only the files.
* The checkpoint is written before the CDI file and removed after it, so a process that is killed in between leaves no orphaned CDI file.
* An error of one claim never affects the other claims of the same call.
* Mutants (wrong drivers) live in `mutants`. Only `__main__` imports them, and only if the settings name one.
* The only dependencies are grpcio, protobuf and PyYAML, because this process uses memory on every node.
"""
