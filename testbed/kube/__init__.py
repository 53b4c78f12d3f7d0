"""The Kubernetes API: one client that speaks in plain dicts. Knows nothing of providers, drivers or pytest."""
