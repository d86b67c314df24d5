"""Browser and operating system of a request, as the list of sessions shows them."""

import ua_parser
from flask import request

_MAX_AGENT = 512  # characters; the rest is ignored
_MAX_NAME = 60


def names() -> dict[str, str]:
    """Return `browser` and `system`, each empty if it is unknown."""
    parsed = ua_parser.parse(request.headers.get("User-Agent", "")[:_MAX_AGENT])
    return {
        "browser": parsed.user_agent.family[:_MAX_NAME] if parsed.user_agent else "",
        "system": parsed.os.family[:_MAX_NAME] if parsed.os else "",
    }
