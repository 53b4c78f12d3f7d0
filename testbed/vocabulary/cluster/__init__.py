"""Words for the cluster around the driver: nodes, kubelets, accounts, quotas, taint rules."""
