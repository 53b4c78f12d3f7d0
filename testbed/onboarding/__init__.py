"""Getting a driver in: a driver file that is right, before anything is judged. Called by the CLI and at the start of a run."""
