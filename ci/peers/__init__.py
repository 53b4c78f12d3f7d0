"""Drivers of other projects, judged as their vendors would do it. Their driver files and manifests are in manifests/drivers."""
