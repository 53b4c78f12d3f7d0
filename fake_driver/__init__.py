"""A DRA driver for hardware that does not exist: it publishes, prepares and unprepares devices that a YAML file describes.

It is a whole driver and knows nothing of the testbed: it stands on any cluster, as a pod or as a plain process on a node.

The rules of this package:
* Decide purely, then act. `inventory`, `claims` and `slices` do no I/O, and from a description to devices there is none either.
* Every effect is named by the claim's UID, so that doing it twice is harmless and a restart needs no memory but the files.
* The checkpoint comes before the CDI file, and goes after it: whoever is killed in between leaves no file that nobody knows.
* One claim's trouble never harms its neighbour in the same call.
* Being wrong on purpose lives in `faults`, which nothing here imports unless a fault is asked for.
* Only grpcio, protobuf and PyYAML beside the standard library: a node pays for this process in memory.
"""
