"""What drivers publish and which claims hold it: slices, pools, taints. Pure, except for reading from the API."""
