"""/api/bio"""

from typing import Any

from flask import Blueprint, Response
from marshmallow import ValidationError, fields

from linkmgr.fields.base import Changes, Choice, New, Text, Url, body, changes_of, join_problems
from linkmgr.fields.links import Alias
from linkmgr.fields.query import paging
from linkmgr.fields.unknown import warn_unknown
from linkmgr.repository import bio
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok, updated, versioned

bp = Blueprint("bio", __name__)

THEMES = ("auto", "light", "dark", "ocean", "forest", "sunset", "candy")  # linkmgr/static/bio.css
MAX_BIO = 2000
MAX_LINKS = 100


class BioLink(New):
    title = Text(required=True)
    url = Url(required=True)


class Links(fields.Field[list[Json]]):
    """An array of {title, url}. Messages name the number of a link, from 1."""

    default_error_messages = {
        "invalid": "must be an array of objects with title and url",
        "many": "must have at most {maximum} links",
        "link": "number {number} must be an object with title and url",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Json]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        if len(value) > MAX_LINKS:
            raise self.make_error("many", maximum=MAX_LINKS)
        return [self._link(number, item) for number, item in enumerate(value, 1)]

    def _link(self, number: int, value: Any) -> Json:
        if not isinstance(value, dict):
            raise self.make_error("link", number=number)
        schema = BioLink()
        try:
            link: Json = schema.load(value)
        except ValidationError as error:
            raise ValidationError(f"number {number}: {join_problems(dict(error.messages_dict))}") from None
        warn_unknown(BioLink, schema.fields, value, "links.")
        return link


class NewBio(New):
    name = Text(required=True)
    alias = Alias()
    bio = Text(MAX_BIO, multiline=True)
    theme = Choice(THEMES)
    links = Links()


class BioChanges(Changes):
    name = Text()
    alias = Alias()
    bio = Text(MAX_BIO, multiline=True, allow_empty=True)
    theme = Choice(THEMES)
    links = Links()


@bp.get("/bio")
def index() -> Json:
    return listing("bios", bio.index(user_id(), **paging()))


@bp.get("/bio/<id:bio_id>")
def read(bio_id: int) -> Response:
    page = bio.read(user_id(), bio_id)
    return versioned(page.pop("version"), data=page)


@bp.post("/bio/add")
def add() -> Json:
    return ok(**bio.add(user_id(), **body(NewBio)))


@bp.put("/bio/<id:bio_id>/update")
def update(bio_id: int) -> Response:
    changes = changes_of(BioChanges, lambda: bio.read(user_id(), bio_id))
    page = bio.update(user_id(), bio_id, **changes)
    return updated("Bio page has been updated successfully.", page.pop("version"), data=page)


@bp.delete("/bio/<id:bio_id>/delete")
def delete(bio_id: int) -> Json:
    bio.delete(user_id(), bio_id)
    return ok("Bio page has been deleted successfully.")
