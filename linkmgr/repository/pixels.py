"""Pixels. linkmgr/resources/pixels.py says which columns are shown."""

from linkmgr.db.statements import Row
from linkmgr.repository.tables import Table

PIXELS = Table("pixels", "pixel")
index, batch, read, delete = PIXELS.index, PIXELS.batch, PIXELS.read, PIXELS.delete


def add(user_id: int, members: Row) -> Row:
    sql = """
        INSERT INTO pixels (user_id, type, name, tag)
        VALUES (%(user_id)s, %(type)s, %(name)s, %(tag)s)
    """
    return PIXELS.add(sql, user_id, members)


def update(user_id: int, pixel_id: int, members: Row) -> Row:
    sql = """
        UPDATE pixels
           SET name = coalesce(%(name)s, name), tag = %(tag)s
         WHERE user_id = %(user_id)s AND id = %(row_id)s
    """
    return PIXELS.change(sql, user_id, pixel_id, members)
