"""`python -m testbed.conformance > docs/requirements.md`: the catalogue for people to read."""

from __future__ import annotations

import sys

from testbed import folders
from testbed.conformance import catalogue, document

if __name__ == "__main__":
    sys.stdout.write(document.markdown(catalogue.read([folders.data("suites")]), folders.data("suites").parent))
