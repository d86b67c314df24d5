"""Pixels. linkmgr/resources/pixels.py says which columns are shown."""

from linkmgr.repository.tables import Table

PIXELS = Table("pixels", "pixel", "type name tag", fixed="type")
