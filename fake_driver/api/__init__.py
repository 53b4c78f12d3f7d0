"""The API server: a small client, watches, retries with back-off, claims, and the served API versions."""
