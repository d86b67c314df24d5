"""User agents of programs: crawlers, previews, scanners and HTTP libraries."""

import re

import ua_parser
from crawlerdetect.providers import crawlers, exclusions
from ua_parser_rs import UserAgentExtractor

# HTTP libraries and previews that crawlerdetect does not have.
_MISSING = (
    "cardyb",
    "insomnia/",
    "java-http-client/",
    "ktor client",
    "powershell/",
    "preview",
    "^(?:bun|deno)/",
    "^node$",
)
_APPS = (r"\bokhttp/[\d.]+",)  # a program for the package, but apps of people use this library


def _lower(pattern: str) -> str:
    """Return a pattern for text in lower case. Escapes such as \\S keep their case."""
    return re.sub(r"(\\.)|(.)", lambda match: match[1] or match[2].lower(), pattern)


_PATTERNS = [_lower(pattern) for pattern in (*crawlers.data, *_MISSING)]
# Only Python's engine has lookaround. It takes up to 26 ms for all patterns, where the one of ua-parser takes 0.03 ms.
_LOOKAROUND = [pattern for pattern in _PATTERNS if re.search(r"\(\?<?[=!]", pattern)]
_SLOW = re.compile("|".join(_LOOKAROUND or ["(?!)"]))
_FAST = UserAgentExtractor(
    (pattern, "bot", None, None, None, None) for pattern in _PATTERNS if pattern not in _LOOKAROUND
)
# The usual parts of browsers' names, some of which look like a program's. The package removes them first, too.
_BROWSERS = re.compile("|".join((*exclusions.data, *_APPS)), re.IGNORECASE)


def is_bot(agent: str) -> bool:
    """Return True if the user agent is empty or names a program."""
    name = _BROWSERS.sub("", agent).lower().strip()
    if not agent.strip() or _SLOW.search(name) or _FAST.extract(name):
        return True
    device = ua_parser.parse_device(agent)
    return bool(device and device.family == "Spider")
