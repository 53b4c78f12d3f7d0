"""A vendor's manifests: rendered with kustomize or Helm, sorted, and adjusted to the testbed. Used by `install`."""
