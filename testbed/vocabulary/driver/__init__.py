"""The driver under test: its slices, its pods, its hardware."""
