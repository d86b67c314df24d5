"""Splash pages. linkmgr/resources/splash.py says which columns are shown."""

from linkmgr.db.statements import Row
from linkmgr.repository.tables import Table

SPLASH_PAGES = Table("splash_pages", "splash page")
index, batch, read, delete = SPLASH_PAGES.index, SPLASH_PAGES.batch, SPLASH_PAGES.read, SPLASH_PAGES.delete


def add(user_id: int, members: Row) -> Row:
    sql = """
        INSERT INTO splash_pages (user_id, name, title, message, link, counter, banner)
        VALUES (%(user_id)s, %(name)s, %(title)s, %(message)s, %(link)s, %(counter)s, %(banner)s)
    """
    return SPLASH_PAGES.add(sql, user_id, members)


def update(user_id: int, splash_id: int, members: Row) -> Row:
    sql = """
        UPDATE splash_pages
           SET name = coalesce(%(name)s, name),
               title = coalesce(%(title)s, title),
               message = coalesce(%(message)s, message),
               link = coalesce(%(link)s, link),
               counter = coalesce(%(counter)s, counter),
               banner = coalesce(%(banner)s, banner)
         WHERE user_id = %(user_id)s AND id = %(row_id)s
    """
    return SPLASH_PAGES.change(sql, user_id, splash_id, members)
