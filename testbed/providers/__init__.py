"""Clusters: who makes or finds them, and what can be done to them. Providers know nothing of DRA drivers or pytest.

A new provider is one module that fulfils the protocols of `base`, and one line in PROVIDERS.
"""
