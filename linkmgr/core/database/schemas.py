"""Connections whose search path begins with a schema that has views in place of tables."""

from linkmgr.core.database import session
from linkmgr.core.database.statements import Database


class SchemaDatabase(Database):
    """A pool of its own, because the prepared statements and the plans of functions depend on the
    search path."""

    may_lag = False  # a replica has no settings of the views

    def __init__(self, primary: Database, schema: str) -> None:
        super().__init__(primary.dsn, primary.prepare)
        primary.pools.append(self)
        self.pools, self.server = primary.pools, primary.server
        self.schema = schema
        if self.prepare:
            path = f" -c search_path={schema},public"
            self.options = self.options | {"options": session.STARTUP_OPTIONS + path}
        else:
            self.prelude += f"SET LOCAL search_path = {schema}, public; "
