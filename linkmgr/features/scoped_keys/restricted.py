"""Connections for API keys that may use only some rows of their user: see "Restricted keys" in
schema.sql."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask

from linkmgr.core.database.schemas import SchemaDatabase
from linkmgr.core.database.statements import database, executor

OWN, DOMAINS = "restricted_own", "restricted_domains"  # the schemas


class RestrictedDatabase(SchemaDatabase):
    def of_key(self, key_id: int, domains: list[int] | None) -> "RestrictedDatabase":
        restricted = copy.copy(self)
        ids = "" if domains is None else f"{{{','.join(map(str, domains))}}}"
        # The last value fails if the schema is missing: PostgreSQL would skip it in the search path
        # and use the tables.
        restricted.prelude += (
            f"SELECT set_config('linkmgr.key_id', '{key_id:d}', true), "
            f"set_config('linkmgr.domains', '{ids}', true), '{self.schema}.links'::regclass; "
        )
        return restricted


@contextmanager
def restrict(key_id: int, *, own_only: bool, domains: list[int] | None) -> Iterator[None]:
    schema = OWN if own_only else DOMAINS
    pools = (pool for pool in database().pools if isinstance(pool, RestrictedDatabase))
    restricted = {pool.schema: pool for pool in pools}
    executor.set(restricted[schema].of_key(key_id, domains))
    try:
        yield
    finally:
        executor.set(None)  # threads serve other requests in the same context


def init_app(_app: Flask) -> None:
    for schema in (OWN, DOMAINS):
        RestrictedDatabase(database(), schema)
