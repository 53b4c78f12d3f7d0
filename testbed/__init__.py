"""A real Kubernetes in seconds, with fake hardware, and a verdict on any DRA driver.

The rooms and who may import whom are described in docs/architecture.md and checked by import-linter.
"""

__version__ = "0.1.0"
