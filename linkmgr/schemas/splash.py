from linkmgr.core.fields.base import Integer, Target, Text
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import DETAIL, Resource, Stored, Words, created, row_id, updated
from linkmgr.repository import splash


class Splash(Resource):
    id = row_id()
    name = member(Text(required=True), "Its name in lists. Visitors do not see it.", "Launch", label="Name")
    title = member(
        Text(allow_empty=True),
        "The heading of the page. Without it, visitors see the title of the link.",
        "One moment",
        label="Heading",
        shown=DETAIL,
    )
    message = member(
        Text(2000, multiline=True, allow_empty=True),
        "The text below the heading.",
        "The sale starts soon.",
        label="Text",
        shown=DETAIL,
    )
    link = member(
        Target(allow_empty=True),
        "The URL that the button and the image open. Without it, there is no button.",
        "https://example.com/",
        label="Button link",
        shown=DETAIL,
    )
    counter = member(
        Integer(1, 60, load_default=5),
        "The seconds until visitors are redirected.",
        5,
        label="Seconds",
        shown=DETAIL,
    )
    banner = member(
        Target(allow_empty=True),
        "The URL of an image above the heading.",
        "https://example.com/sale.png",
        label="Image",
        synonyms="image picture thumbnail",
        shown=DETAIL,
    )
    date = created()
    updated = updated()


SPLASH_PAGES = Stored(
    Splash,
    Words("splash page", path="splash", plural="splash", table="splash_pages"),
    rows=splash,
    create=splash.add,
    change=splash.update,
)
