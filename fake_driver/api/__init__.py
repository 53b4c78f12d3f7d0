"""The API server as the driver uses it: a small client, watches, retries with back-off, claims, served versions."""
