"""Splash pages. linkmgr/resources/splash.py says which columns are shown."""

from linkmgr.repository.tables import Table

SPLASH_PAGES = Table("splash_pages", "splash page", "name title message link counter banner")
index, batch, read, delete = SPLASH_PAGES.index, SPLASH_PAGES.batch, SPLASH_PAGES.read, SPLASH_PAGES.delete
add, update = SPLASH_PAGES.add, SPLASH_PAGES.update
