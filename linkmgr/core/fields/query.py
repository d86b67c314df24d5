"""Request validation: pagination and other parameters of the query."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from marshmallow import ValidationError
from werkzeug.exceptions import NotFound

from linkmgr.core.database.paging import MAX_SORTED, NamedPaging, Paging
from linkmgr.core.fields import strict_json
from linkmgr.core.fields.base import MAX_ID
from linkmgr.core.fields.problems import invalid
from linkmgr.core.fields.urls import MAX_URL, split_ascii
from linkmgr.core.web.request import current

DEFAULT_LIMIT, MAX_LIMIT = 15, 1000
MAX_IDS = 100  # of a parameter
MAX_PAGE = 10**18 - 1  # so that neither PostgreSQL nor the JSON of a client overflows
_TEXT: dict[str, Any] = {"type": "string", "maxLength": 255}


class Parameter:
    """A declared parameter of the query. `parse` returns its value from its name and text, and
    `json` is its JSON Schema, with the `enum` of values that it can have, its `title` in the
    document, and the `default` that it has if it was not sent. A list may be sent in parts,
    `by=country&by=os` as well as `by=country,os`. One that `selects_media` is not in the document,
    whose operations have one media type each."""

    def __init__(
        self,
        about: str,
        parse: Callable[[str, str], Any] = lambda _name, text: text,
        *,
        is_list: bool = False,
        selects_media: bool = False,
        **json: Any,
    ) -> None:
        self.about, self.parse, self.is_list = about, parse, is_list
        self.selects_media = selects_media
        self.json = json if "type" in json else _TEXT | json
        self.default = json.get("default")


def row_id(name: str, text: str, form: str = "an id such as 17") -> int:
    """Return an id. An id that no row can have becomes 0, so that it is not found."""
    if not re.fullmatch("[0-9]+", text, re.ASCII):
        raise invalid(f"{name} must be {form}")
    return int(text) if len(text) <= len(str(MAX_ID)) and int(text) <= MAX_ID else 0


def row_ids(name: str, text: str) -> list[int]:
    form = "ids separated by commas, such as 17,18"
    ids = list(dict.fromkeys(row_id(name, part, form) for part in text.split(",")))
    if len(ids) > MAX_IDS:
        raise invalid(f"{name} must have at most {MAX_IDS} ids", "too_long")
    return ids


def host_of(_name: str, text: str) -> str:
    return re.sub("^https?://|(:[0-9]+)?/?$", "", text.lower(), flags=re.ASCII)


def url_of(name: str, text: str) -> str:
    """Return a URL in the form in which links have it."""
    try:
        return split_ascii(text).geturl()
    except ValidationError as error:
        raise invalid(f"{name} {error.messages[0]}") from None


# Line breaks, which no member of a link has, separate the members in the text that is searched.
SEARCH = Parameter(
    "A part of the URL, alias or title, or else the title of the target's page, a short URL or an external id.",
    lambda _name, text: text.replace("\n", "\r"),
    maxLength=MAX_URL,
)
STATISTICS = {
    "statistics": Parameter(
        "`0` leaves out the statistics, which are then not read.", enum=["0", "1"], default="1"
    )
}
# Parameters whose values are ids
ID: dict[str, Any] = {"type": "integer", "minimum": 1}
IDS: dict[str, Any] = {
    "type": "array",
    "items": ID,
    "minItems": 1,
    "maxItems": MAX_IDS,
    "examples": [[17, 18]],
}
PAGING = {
    "limit": Parameter(
        f"The number of rows on a page. A number above {MAX_LIMIT} means {MAX_LIMIT}.",
        type="integer",
        minimum=1,
        default=DEFAULT_LIMIT,
    ),
    "page": Parameter("The number of the page.", type="integer", minimum=1, maximum=MAX_PAGE, default=1),
    "after": Parameter(
        "The `next` of the previous response, instead of `page`. Takes equally long anywhere in the list.",
        type="string",
        pattern="^[1-9][0-9]{0,18}$",
    ),
}
NAMED_PAGING = {
    "q": Parameter("A part of the name, in upper or lower case."),
    "order": Parameter(
        f"By `date`, newest first, or the newest {MAX_SORTED:,} by `name`, without `next` and `after`.",
        enum=["date", "name"],
        title="ListOrder",
        default="date",
    ),
} | PAGING


def named_paging() -> NamedPaging:
    sent, page = values_of(NAMED_PAGING), paging()
    if page["after"] and sent["order"] == "name":
        raise invalid("after requires order=date. Use page to list by name")
    return {**page, "q": sent["q"], "order": sent["order"]}


def paging(first: int = 1) -> Paging:
    """Return `limit`, and `page` or `after`, of the query as keyword arguments of
    `statements.page`. `first` is the smallest `after`."""
    if not current().query_string:
        return {"limit": DEFAULT_LIMIT, "number": 1, "after": None}
    number, after = page_number(), _query_integer("after", MAX_ID, first)
    if after and number > 1:  # clients that are generated from the document always send its default, page=1
        raise invalid("after and page exclude each other. Send only one of them")
    return {"limit": page_limit(), "number": number, "after": after}


def wants_statistics() -> bool:
    return not current().query_string or values_of(STATISTICS)["statistics"] == "1"


def page_limit() -> int:
    return min(_query_integer("limit") or DEFAULT_LIMIT, MAX_LIMIT)


def page_number() -> int:
    return _query_integer("page", MAX_PAGE) or 1


def _query_value(name: str, *, is_list: bool = False) -> str:
    args = current().args
    if name not in args:
        return ""
    values = args.getlist(name)
    if is_list:
        return ",".join(filter(None, values))
    if len(values) > 1:
        raise invalid(f"{name} must not be repeated in the query")
    return values[0]


def _query_integer(name: str, maximum: int | None = None, minimum: int = 1) -> int | None:
    text = _query_value(name)
    if not text:
        return None
    is_integer = re.fullmatch("0|[1-9][0-9]*", text, re.ASCII)
    number = int(text[:20]) if is_integer else minimum - 1  # enough digits to exceed any maximum
    if number < minimum:
        code = "out_of_range" if is_integer else "type"
        raise invalid(f"{name} must be an integer of at least {minimum}", code)
    if maximum and number > maximum:
        raise invalid(f"{name} must be at most {maximum}", "out_of_range")
    return number


def query_position(name: str) -> int:
    return _query_integer(name, MAX_ID, 0) or 0


def query_id(name: str) -> str | None:
    """Return the id of a row in the query of a page, or "0", as text. An id that no row can have is
    a 404, as in a path."""
    number = _query_integer(name, minimum=0)
    if number is not None and number > MAX_ID:
        raise NotFound
    return None if number is None else str(number)


def query_text(name: str, max_length: int = 255, *, is_list: bool = False) -> str | None:
    text = _query_value(name, is_list=is_list)
    if not text:
        return None
    if len(text) > max_length or not strict_json.is_storable(text):
        code = "too_long" if len(text) > max_length else "invalid"
        raise invalid(f"{name} must be at most {max_length} characters, without NUL characters", code)
    return text


def query_choice(name: str, choices: tuple[str, ...]) -> str | None:
    text = query_text(name)
    return text and chosen(name, text, choices)


def chosen(name: str, text: str, choices: Collection[str]) -> str:
    if text not in choices:
        raise invalid(f"{name} must be one of {', '.join(choices)}", "unknown_value")
    return text


def parameters(declared: dict[str, Parameter]) -> dict[str, Any]:
    """Return the values of the parameters. Any other in the query is an error that lists them."""
    refuse_others("parameter", current().args, declared)
    return values_of(declared)


def refuse_others(noun: str, sent: Iterable[str], declared: Iterable[str]) -> None:
    names = ", ".join(declared)
    for name in sent:
        if name not in declared:
            unknown = name[:50] if strict_json.is_storable(name) else f"a {noun}"
            choices = f"these are: {names}" if names else "it has none"
            raise invalid(f"{unknown} is not a {noun} of this operation; {choices}", field=unknown)


def values_of(declared: dict[str, Parameter]) -> dict[str, Any]:
    sent, values = current().args, {name: parameter.default for name, parameter in declared.items()}
    for name in [name for name in declared if name in sent]:
        parameter = declared[name]
        if text := query_text(name, parameter.json.get("maxLength", MAX_URL), is_list=parameter.is_list):
            values[name] = parameter.parse(name, chosen(name, text, parameter.json.get("enum", (text,))))
    return values
