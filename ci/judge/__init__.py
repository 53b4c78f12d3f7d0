"""Mutants of the judge: faults around the driver, under which no verdict about it may be wrong. `tox -e mutants -- --judge` runs them.

`pairs` is the table of faults and allowed verdicts, `faults` and `watch_proxy` cause them, `moments` says when, `running` runs one pair,
`outcome` compares its verdicts, `page` renders the section of docs/mutants.md, and `command` is called by ci.mutants.
"""
