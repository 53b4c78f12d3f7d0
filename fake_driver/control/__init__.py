"""Change a running driver: the control socket, the console behind it, and the hardware changes it applies."""
