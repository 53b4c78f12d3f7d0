"""Tell the driver's failures from those of the cluster: pods that need no driver run after each failure. Used by the controller."""
