"""An application that responds after three seconds, for tests of the worker."""

import time
from collections.abc import Callable
from typing import Any


def app(_environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    time.sleep(3)
    start_response("200 OK", [("Content-Length", "0")])
    return []
