from typing import Any, ClassVar

from marshmallow import ValidationError, fields

from linkmgr.db.statements import Row
from linkmgr.fields.aliases import OwnAlias
from linkmgr.fields.base import Choice, Shown, Text, Url
from linkmgr.fields.bodies import New
from linkmgr.fields.member import JsonSchema, member, ref
from linkmgr.fields.problems import join_problems
from linkmgr.fields.unknown import warn_unknown
from linkmgr.repository import bio
from linkmgr.resources.resource import DETAIL, EXPORT, Resource, Stored, Words, created, row_id, updated

THEMES = ("auto", "light", "dark", "ocean", "forest", "sunset", "candy")  # linkmgr/static/bio.css
MAX_LINKS = 100


class BioLink(New):
    title = member(Text(required=True), "", "Shop")
    url = member(Url(required=True), "It may also be one of your short links.", "https://example.com/shop")


class Links(fields.Field[list[Row]]):
    """An array of {title, url}. Messages name the number of a link, from 1."""

    nested = (BioLink,)
    parts = ("title", "url")
    json: ClassVar[JsonSchema] = {"type": "array", "items": ref(BioLink), "maxItems": MAX_LINKS}
    default_error_messages = {
        "invalid": "must be an array of objects with title and url",
        "many": "must have at most {maximum} links",
        "link": "number {number} must be an object with title and url",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Row]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        if len(value) > MAX_LINKS:
            raise self.make_error("many", maximum=MAX_LINKS)
        return [self._link(number, item) for number, item in enumerate(value, 1)]

    def _link(self, number: int, value: Any) -> Row:
        if not isinstance(value, dict):
            raise self.make_error("link", number=number)
        schema = BioLink()
        try:
            link: Row = schema.load(value)
        except ValidationError as error:
            raise ValidationError(f"number {number}: {join_problems(dict(error.messages_dict))}") from None
        warn_unknown(BioLink, schema.fields, value, "links.")
        return link


class BioPage(Resource):
    id = row_id()
    name = member(Text(required=True), "The heading of the page.", "Dana", label="Name")
    alias = member(
        OwnAlias(),
        "The last part of the page's URL. It is case-sensitive, unique among links and bio pages, and not the path "
        "of a page of the service, such as `login`. Without it, the service generates 8 characters.",
        "dana",
        label="Alias",
    )
    custom = member(Shown({"type": "string"}), '`alias`, or "" if the service generated it.', "dana", shown=EXPORT)
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
        Links(load_default=list),
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
