"""Run each requirement on its mutants: drivers and clusters that are wrong in one known way, and on which its test must fail.

`known` lists the mutants, `matrix` plans the runs and reads their results, `activation` turns a testbed into a mutant and back, `digest`
decides whether a result is fresh, and `page` renders docs/mutants.md. `dead_runs` runs all requirements about the driver on drivers that do
nothing, `dead` compares the results with dead.yaml, and `dead_page` renders them.
"""
