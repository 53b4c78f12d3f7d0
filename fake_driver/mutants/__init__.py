"""Ways to be wrong on purpose, by family: what is prepared, published, said. `faults` puts one in place; nothing else knows them.

A mutant is a function from the right parts to the wrong ones, or a class that takes the place of `Driver`. Its name is its word, its first
sentence says what is wrong. To add one: write it in the module of its family, and name it in the tuple at that module's end.
"""

from fake_driver.mutants import preparing, publishing, saying
from fake_driver.mutants.naming import Change, named

MUTANTS: dict[str, Change] = named(*preparing.ALL, *publishing.ALL, *saying.ALL)

__all__ = ["MUTANTS", "Change", "named"]
