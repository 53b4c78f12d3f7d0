"""The kubelet's side of a driver's socket: the messages it speaks, generated from our own .proto sources."""
