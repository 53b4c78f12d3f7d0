"""The Kubernetes API: client, kubeconfigs, permissions, feature gates, ownership of objects. Independent of providers and drivers."""
