"""Words for pods and their containers, and for the workloads that make pods."""
