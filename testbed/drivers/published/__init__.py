"""What drivers publish and which claims hold it: slices, pools, taints, missing slices. Pure, except for reading from the API."""
