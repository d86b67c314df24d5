"""Detection of bots: crawlers, link previews, scanners and HTTP libraries."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

import ua_parser
from crawlerdetect.providers import crawlers, exclusions
from ua_parser_rs import UserAgentExtractor

_PROGRAMS = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))
_PREVIEWS, _MONITORS = _PROGRAMS["previews"], _PROGRAMS["monitors"]
NAMES = tuple(dict.fromkeys((*_PROGRAMS["names"], *_PREVIEWS, *_MONITORS)))  # of bots in statistics
OTHER_BOT = "Other bot"


def _lower(pattern: str) -> str:
    """Return a pattern for text in lower case. Escapes such as \\S keep their case."""
    return re.sub(r"(\\.)|(.)", lambda match: match[1] or match[2].lower(), pattern)


_PATTERNS = [
    _lower(pattern)
    for pattern in (*crawlers.data, *_PROGRAMS["others"], *_PREVIEWS.values(), *_MONITORS.values())
]
# Only Python's re supports lookaround. It takes up to 26 ms for all patterns, the engine of
# ua-parser 0.03 ms.
_LOOKAROUND = [pattern for pattern in _PATTERNS if re.search(r"\(\?<?[=!]", pattern)]
_PYTHON_MATCHER = re.compile("|".join(_LOOKAROUND or ["(?!)"]))
_RUST_MATCHER = UserAgentExtractor(
    (pattern, "bot", None, None, None, None) for pattern in _PATTERNS if pattern not in _LOOKAROUND
)
# Common parts of browser names, some of which match a pattern. Like crawlerdetect, remove them
# first.
_BROWSER_WORDS = re.compile("|".join(exclusions.data), re.IGNORECASE)
_PREVIEW_MATCHER = re.compile("|".join(_PREVIEWS.values()), re.IGNORECASE)


@lru_cache(maxsize=1024)
def shows_previews(agent: str) -> bool:
    return _PREVIEW_MATCHER.search(agent) is not None


def name(agent: str) -> str:
    lower = agent.lower()
    return next((name for name in NAMES if name.lower() in lower), OTHER_BOT)


def is_bot(agent: str) -> bool:
    name = _BROWSER_WORDS.sub("", agent).lower().strip()
    if not agent.strip() or _PYTHON_MATCHER.search(name) or _RUST_MATCHER.extract(name):
        return True
    device = ua_parser.parse_device(agent)
    return bool(device and device.family == "Spider")
