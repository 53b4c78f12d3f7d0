"""The sockets that the kubelet connects to, the gRPC services behind them, and armed faults of their calls."""
