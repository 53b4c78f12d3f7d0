"""What drivers publish and who holds it: slices, pools, taints, missing slices. Pure, except for the reads."""
