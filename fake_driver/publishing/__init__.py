"""ResourceSlices: the desired slices, the writes that create them, and the watch that repairs them."""
