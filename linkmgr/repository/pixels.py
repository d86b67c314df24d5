"""Pixels. linkmgr/resources/pixels.py says which columns are shown."""

from linkmgr.repository.tables import Table

PIXELS = Table("pixels", "pixel", "type name tag", fixed="type")
index, batch, read, delete = PIXELS.index, PIXELS.batch, PIXELS.read, PIXELS.delete
add, update = PIXELS.add, PIXELS.update
