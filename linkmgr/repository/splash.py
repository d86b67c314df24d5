"""Splash pages. linkmgr/resources/splash.py says which columns are shown."""

from linkmgr.repository.tables import Table

SPLASH_PAGES = Table("splash_pages", "splash page", "name title message link counter banner")
