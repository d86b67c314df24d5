from linkmgr.core.fields.base import Boolean, Color, Text
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import EXPORT, Resource, Stored, Words, created, row_id, updated
from linkmgr.repository import channels


class Channel(Resource):
    id = row_id()
    name = member(Text(required=True), "Unique among your channels.", "Reading", label="Name")
    description = member(
        Text(1000, multiline=True, allow_empty=True),
        "A note for yourself.",
        "For the train",
        label="Description",
    )
    color = member(Color(load_default="#3b82f6"), "Marks the channel in lists.", "#f59e0b", label="Color")
    starred = member(Boolean(load_default=False), "Marks the channel as a favorite.", True, label="Starred")
    date = created(shown=EXPORT)
    updated = updated()


CHANNELS = Stored(
    Channel,
    Words("channel", path="channel", plural="channels", table="channels"),
    rows=channels,
    create=channels.add,
    change=channels.update,
)
