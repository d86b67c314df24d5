"""Links with `extrapath`: what follows the alias in the path of a short URL."""

from urllib.parse import quote, unquote

from linkmgr.core.database.statements import Row
from linkmgr.core.fields.aliases import MAX_ALIAS, normal
from linkmgr.core.settings import settings
from linkmgr.core.web.request import current
from linkmgr.repository import extra_path, public

_MAX_PARTS = (MAX_ALIAS + 1) // 2  # of an alias, between its slashes


def find_requested(host: str | None) -> Row | None:
    environ = current().environ
    return find(host, environ["PATH_INFO"][1:], environ.get("RAW_URI", "").partition("?")[0][1:])


def find(host: str | None, path: str, sent: str = "") -> Row | None:
    """Return the link with the longest alias that a path begins with, or None. The path is decoded
    as in WSGI, and `sent` is it as it was sent, if the server says so."""
    parts, encoded = path.split("/"), sent.split("/")
    aliases = _aliases(parts, _MAX_PARTS if host or "widealiases" in settings().aliases else 1)
    alias = extra_path.longest(host, [*aliases]) if len(aliases) > 1 else next(iter(aliases), None)
    if alias is None or not parts[aliases[alias]]:  # no route has `//` behind an alias
        return None
    number = aliases[alias]
    rest = "/".join(encoded[number:])
    if unquote("/".join(encoded[:number]), "latin-1") != "/".join(parts[:number]) or not rest.isascii():
        rest = quote("/".join(parts[number:]), encoding="latin-1")
    return public.short_link(host, alias, rest)


def _aliases(parts: list[str], most: int) -> dict[str, int]:
    """Return the aliases that the path can begin with, and the number of parts of each."""
    numbers = range(1, min(most, len(parts) - 1) + 1)
    decoded = {"/".join(parts[:n]).encode("latin-1").decode(errors="replace"): n for n in numbers}
    aliases = {normal(text): n for text, n in decoded.items()}
    return {alias: n for alias, n in aliases.items() if len(alias) <= MAX_ALIAS and "\0" not in alias}
