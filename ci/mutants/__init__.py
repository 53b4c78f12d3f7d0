"""The proof that requirements can fail: each is run on every driver and cluster, wrong in one known way, that it says it fails on.

`known` lists the mutants, `matrix` is the plan and what came of it, `changing` makes a testbed wrong and right again, `page` is the
page docs/mutants.md.
"""
