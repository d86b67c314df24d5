"""The rights of members in the account of another user (features/members/handlers.md).

Each page of the console belongs to the first word below /console in its path. Pages of a word that
is not here are for owners, and administration is for nobody: it is the person's own account that
makes an administrator.
"""

from linkmgr.core.errors import AppError

_OWNER, _EDITOR = "owner", "editor"  # a viewer changes nothing
CHANGED = frozenset(  # by editors
    {"", "links", "qrs", "bios", "campaigns", "channels", "splash", "overlays", "pixels", "utm", "imports"}
    | {"statistics", "conversions"}
)
READ = CHANGED | {"domains", "members", "export/links.csv", "conversions.csv"}  # by editors and viewers
_ADMINISTRATION = "administration"


def can(role: str | None, path: str, *, change: bool = False) -> bool:
    """Return True if a role may open, or change something on, a page. None is the user whose
    account it is. Pages outside the console are those of the person."""
    words = path.split("/")[2:]
    word = words[0] if words else ""
    if role is None or not path.startswith("/console"):
        return True
    if role == _OWNER:
        return word != _ADMINISTRATION
    if change:
        return role == _EDITOR and word in CHANGED
    return word in READ or "/".join(words) in READ


def require(role: str | None, path: str, *, change: bool) -> None:
    if not can(role, path, change=change):
        looks = "administration_page" if role == _OWNER else "role_reads"
        raise AppError("role_changes" if change and can(role, path) else looks)
