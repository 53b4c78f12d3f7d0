"""Drivers of others, judged as their vendors would do it. Each folder is what a vendor has: a driver file with the manifests it names."""
