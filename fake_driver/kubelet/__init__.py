"""The sockets that the kubelet talks to, the gRPC services behind them, device health, and armed faults."""
