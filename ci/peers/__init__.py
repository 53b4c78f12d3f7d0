"""Drivers of other projects, judged as their vendors would do it. Each folder has a driver file and the manifests that it names."""
