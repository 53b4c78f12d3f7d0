"""The verbs of the suites: scenarios, pods, claims, the driver and the cluster.

Each waits with a budget and, if it fails, reports what it last saw. Suites get them as fixtures from the plugin.
"""
