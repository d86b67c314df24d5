"""New passwords of the console. Those of the API and of commands are as the API documents them."""

import threading

from zxcvbn import zxcvbn

from linkmgr.core.errors import AppError

MIN_LENGTH = 8
_MIN_GUESSES = 1_000_000  # below it, zxcvbn calls a password very guessable
_COMPARED = 16  # characters: 40 can take more than a second
_turn = threading.Lock()  # zxcvbn keeps the names of a call in a variable of its module


def require_strong(password: str, *names: str) -> None:
    """Refuse a short password, a common one, and one like the names of its user."""
    if len(password) < MIN_LENGTH:
        raise AppError("password_short")
    with _turn:
        result = zxcvbn(password[:_COMPARED], user_inputs=[name[:_COMPARED] for name in names])
    if result["guesses"] < _MIN_GUESSES:
        raise AppError("password_common")
