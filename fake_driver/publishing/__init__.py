"""ResourceSlices: what they should be, the writes that get them there, and the watch that keeps them there."""
