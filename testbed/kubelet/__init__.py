"""The gRPC messages between kubelet and driver, generated from our own .proto sources."""
