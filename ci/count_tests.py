#!/usr/bin/env python3
"""Print how many tests ran in all tox environments, from their JUnit files: the last line of CI's output.

ci/count_tests.py FOLDER

Only the environments' own files count. A mutant's run writes a JUnit file as well, elsewhere in the folder, and must have failures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(folder: Path) -> int:
    """Print the sums; return 1 if a test failed or none ran."""
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for file in sorted(folder.glob("*/tmp/**/junit*.xml")):
        for suite in ElementTree.parse(file).iter("testsuite"):  # noqa: S314 - the file is written by our own tests
            for key in total:
                total[key] += int(suite.get(key, 0))
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    print(f"{passed} passed, {failed} failed, {total['skipped']} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
