from collections.abc import Iterator
from typing import Any

from linkmgr.imports.rows import ImportRow

SERVICES = ("bitly", "kutt", "shlink", "yourls")


def read_service(source: str, address: str, token: str, position: Any = None) -> Iterator[ImportRow]:
    """Read the rows of a service after `position`. `address` is empty for a service that has only one."""
    raise NotImplementedError
