"""Words for the driver under test: its slices, its pods, its hardware."""
