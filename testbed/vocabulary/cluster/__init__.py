"""The cluster around the driver: nodes, kubelets, the driver's account, quotas, taint rules."""
