"""Pods and their containers, and the workloads that create pods."""
