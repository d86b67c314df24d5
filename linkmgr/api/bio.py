"""/api/bio"""

from typing import Any

from flask import Blueprint
from marshmallow import ValidationError, fields

from linkmgr.fields.base import Changes, Choice, New, Text, body, paging, sentences
from linkmgr.fields.links import Alias
from linkmgr.fields.urls import split_ascii
from linkmgr.repository import bio
from linkmgr.web.auth import user_id
from linkmgr.web.responses import Json, listing, ok

bp = Blueprint("bio", __name__)

THEMES = ("auto", "light", "dark", "ocean", "forest", "sunset", "candy")  # linkmgr/static/bio.css
MAX_BIO = 2000
MAX_LINKS = 100


class Url(Text):
    """Any http or https URL: unlike a redirect, a page may well lead to our own short links."""

    def clean(self, text: str) -> str:
        return split_ascii(text).geturl()


class BioLink(New):
    title = Text(required=True)
    url = Url(required=True)


class Links(fields.Field[list[Json]]):
    """[{title, url}]; what is wrong is told with the number of the link, from 1."""

    default_error_messages = {
        "invalid": "must be an array of objects {{title, url}}",
        "many": "must be at most {most} links",
        "link": "number {number} must be an object {{title, url}}",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Json]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        if len(value) > MAX_LINKS:
            raise self.make_error("many", most=MAX_LINKS)
        return [self._link(number, each) for number, each in enumerate(value, 1)]

    def _link(self, number: int, value: Any) -> Json:
        if not isinstance(value, dict):
            raise self.make_error("link", number=number)
        try:
            link: Json = BioLink().load(value)
        except ValidationError as error:
            raise ValidationError(f"number {number}: {sentences(dict(error.messages_dict))}") from None
        return link


class NewBio(New):
    name = Text(required=True)
    alias = Alias()
    bio = Text(MAX_BIO, lines=True)
    theme = Choice(THEMES)
    links = Links()


class BioChanges(Changes):
    name = Text()
    alias = Alias()
    bio = Text(MAX_BIO, lines=True, emptied=True)
    theme = Choice(THEMES)
    links = Links()


@bp.get("/bio")
def index() -> Json:
    return listing("bios", bio.index(user_id(), **paging()))


@bp.get("/bio/<id:bio_id>")
def read(bio_id: int) -> Json:
    return ok(data=bio.read(user_id(), bio_id))


@bp.post("/bio/add")
def add() -> Json:
    return ok(**bio.add(user_id(), **body(NewBio)))


@bp.put("/bio/<id:bio_id>/update")
def update(bio_id: int) -> Json:
    bio.update(user_id(), bio_id, **body(BioChanges))
    return ok("Bio page has been updated successfully.")


@bp.delete("/bio/<id:bio_id>/delete")
def delete(bio_id: int) -> Json:
    bio.delete(user_id(), bio_id)
    return ok("Bio page has been deleted successfully.")
