"""Errors that are answered with a sentence of error_catalogue.py. One that the database detects has
the name of its constraint as its code (schema.sql)."""

from collections.abc import Callable, Container
from typing import Any, TypeVar

import psycopg2

from linkmgr.core.error_catalogue import CATALOGUE, DETAILED, FIELDS

T = TypeVar("T")

RETRY_SECONDS = 2  # Retry-After of every 503; a restart of the database takes about as long


class AppError(Exception):
    """An error of the catalogue. `values` fill the placeholders of its sentence; `seconds` also
    sets Retry-After."""

    def __init__(self, code: str, **values: object) -> None:
        self.code = code
        self.status, sentence = CATALOGUE[code]
        self.message = DETAILED.get((code, str(values.get("detail"))), sentence).format(**values)
        self.seconds = values.get("seconds")
        self.scope = values.get("scope")
        self.errors: Any = values.get("errors")  # of members: field, code and message
        super().__init__(self.message)

    def problems(self, members: Container[str]) -> list[dict[str, str]]:
        return list(self.errors) if self.errors else problems_of_code(self.code, self.message, members)


def problems_of_code(code: str, message: str, members: Container[str]) -> list[dict[str, str]]:
    names = [name for name in FIELDS.get(code, ()) if name in members]
    return [{"field": name, "code": code, "message": message} for name in names[:1]]


def not_found(what: str) -> AppError:
    """Return the same 404 for a missing row and for another tenant's row."""
    return AppError("missing", what=what)


def required(row: T | None, code: str, **values: object) -> T:
    if row is None:
        raise AppError(code, **values)
    return row


def existing(row: T | None, what: str) -> T:
    return required(row, "missing", what=what)


def as_json(code: str, message: str, request_id: str, base_url: str) -> dict[str, Any]:
    docs = f"{base_url}/api/docs/errors#error-{code}"
    return {"error": 1, "message": message, "code": code, "request_id": request_id, "docs": docs}


def from_constraint(error: psycopg2.IntegrityError) -> AppError | None:
    """Return the error that the constraint is named after, or None if no client can have caused
    it."""
    name = error.diag.constraint_name or ""
    if name.endswith("_user_id_fkey"):  # the caller was deleted
        return AppError("key_unknown")
    return AppError(name, detail=error.diag.message_detail) if name in CATALOGUE else None


def as_app_error(error: Exception) -> AppError | None:
    if isinstance(error, psycopg2.IntegrityError):
        return from_constraint(error)
    return error if isinstance(error, AppError) else None


def refusal(write: Callable[[], Any], *codes: str) -> AppError | None:
    """Return the error for which nothing was written, or None. Raise errors with other codes than
    these, if any."""
    try:
        write()
    except (AppError, psycopg2.IntegrityError) as error:
        app_error = as_app_error(error)
        if app_error is None or (codes and app_error.code not in codes):
            raise
        return app_error
    return None
