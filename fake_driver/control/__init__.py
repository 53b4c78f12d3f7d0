"""Control of a running driver: the control socket and its client, the requests, and run-time changes of the hardware."""
