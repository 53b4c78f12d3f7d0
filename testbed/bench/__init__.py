"""Benchmarks, used by `dra-testbed bench`. Each has a peer that is measured in the same run, because ratios are less noisy than times."""
