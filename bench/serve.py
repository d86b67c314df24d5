"""Serve the linkmgr that Python finds, with new data, until standard input is closed. Print where.

`bench.against` runs this file with the modules of another commit.
"""

import json
import sys
from contextlib import ExitStack

from bench import data
from bench.servers import gunicorn, postgres

LINKS, VISITS = 10_000, 10_000


def run() -> None:
    with ExitStack() as stack:
        dsn, database = stack.enter_context(postgres())
        rows = data.make(dsn, links=LINKS, visits=VISITS)
        base, service = stack.enter_context(gunicorn("app:app", **data.settings(dsn)))
        sys.stdout.write(
            json.dumps({"base": base, "service": service, "database": database, "data": rows}) + "\n"
        )
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    run()
