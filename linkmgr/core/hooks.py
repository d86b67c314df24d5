"""Functions of the packages above that core calls. The service or a feature sets each, and its
default does nothing."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from flask import Flask

from linkmgr.core.database.statements import Row
from linkmgr.core.settings import this_app
from linkmgr.core.web.caller import Key


def _find_no_key(_key: str, _by: int) -> None: ...


def _use_any_key(_key: Key, _stated: Any) -> None: ...


def _count_no_path(
    _environ: dict[str, Any], _domain_id: int | None, _path: str, *, can_be_wide: bool
) -> None: ...


def _answer_no_host() -> Any: ...


def _find_no_page() -> Any: ...


def _send_no_message(_user_id: int, _message: str, **_values: Any) -> None: ...


def _keep_target(url: str, _link_id: int, _at: float) -> str:
    return url


class Hooks(NamedTuple):
    # Return the caller of a scoped key and count requests, or return None if there is no such key.
    find_key: Callable[[str, int], Row | None] = _find_no_key
    # Refuse an operation that such a key does not allow, and restrict the statements of the request
    # to its rows.
    use_key: Callable[[Key, Any], None] = _use_any_key
    # Return the response to a request to a foreign host, or None if a route answers it.
    answer_host: Callable[[], Any] = _answer_no_host
    # Return the response to a path that a host does not have, or None for the error page.
    missing_page: Callable[[], Any] = _find_no_page
    # Return the target of a visit of a link, with a click id. The time of the visit is in seconds
    # since the epoch.
    add_click_id: Callable[[str, int, float], str] = _keep_target
    # Count a path of a branded domain, or of our own host, that a visitor did not find. It may be a
    # wide alias.
    count_missing_path: Callable[..., None] = _count_no_path
    # Send a user, or the address `to`, the e-mail message with this name, which shows these values,
    # after the request. Users get one message `about` the same.
    notify: Callable[..., None] = _send_no_message


def init_app(app: Flask, parts: Iterable[Hooks]) -> None:
    """Register the hooks that the parts set."""
    chosen = [item for part in parts for item in part._asdict().items()]
    own = {name: hook for name, hook in chosen if hook is not Hooks._field_defaults[name]}
    app.extensions["linkmgr_hooks"] = Hooks(**own)


def hooks() -> Hooks:
    registered: Hooks = this_app().extensions["linkmgr_hooks"]
    return registered
