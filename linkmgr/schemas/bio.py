from linkmgr.core.fields.aliases import OwnAlias
from linkmgr.core.fields.base import Choice, Shown, Text, Url
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import member
from linkmgr.core.fields.objects import Objects
from linkmgr.core.fields.resource import DETAIL, EXPORT, Resource, Stored, Words, created, row_id, updated
from linkmgr.repository import bio

THEMES = ("auto", "light", "dark", "ocean", "forest", "sunset", "candy")  # linkmgr/static/bio.css
MAX_LINKS = 100


class BioLink(New):
    title = member(Text(required=True), "", "Shop")
    url = member(Url(required=True), "It may also be one of your short links.", "https://example.com/shop")


class BioPage(Resource):
    id = row_id()
    name = member(Text(required=True), "The heading of the page.", "Dana", label="Name")
    alias = member(
        OwnAlias(),
        "The last part of the page's URL. It is case-sensitive, unique among links and bio pages, "
        "and not the path of a page of the service, such as `login`. Without it, the service "
        "generates 8 characters.",
        "dana",
        label="Alias",
    )
    custom = member(
        Shown({"type": "string"}), '`alias`, or "" if the service generated it.', "dana", shown=EXPORT
    )
    shorturl = member(Shown({"type": "string", "pattern": "^https?://"}), "", "https://go.example.org/dana")
    bio = member(
        Text(2000, multiline=True, allow_empty=True),
        "The text below the heading.",
        "I write.",
        label="About",
        shown=DETAIL,
    )
    theme = member(
        Choice(THEMES, load_default="light"),
        "The colors. `auto` is light or dark, as the visitor prefers.",
        "ocean",
        label="Theme",
        shown=DETAIL,
    )
    links = member(
        Objects(BioLink, MAX_LINKS, load_default=list),
        "The links of the page, in this order. An update replaces all of them.",
        [{"title": "Shop", "url": "https://example.com/shop"}],
        label="Links",
        shown=DETAIL,
    )
    channel = member(
        Shown({"type": "array", "items": {"type": "integer"}}), "The ids of its channels.", [17], shown=EXPORT
    )
    date = created()
    updated = updated()


BIO_PAGES = Stored(
    BioPage,
    Words("bio page", path="bio", plural="bio", table="bios"),
    rows=bio,
    create=bio.add,
    change=bio.update,
)
