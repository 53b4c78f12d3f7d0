"""One run, from its request to its report: a testbed, the suites in a pytest process, the exit code. Called by the CLI, `bench` and ci/."""
