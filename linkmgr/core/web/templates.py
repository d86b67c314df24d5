"""Pages whose text has host names, and aliases, as people write them. Attributes and code have them
in ASCII."""

import re
from typing import Any
from urllib.parse import unquote

from flask import Flask
from jinja2 import Template

from linkmgr.core.fields.urls import ENCODED, readable_label

# Not behind the slash of a path, where an alias may look like a host name
_PARTS = re.compile(
    rf"<(code|pre|script|style|textarea)\b.*?</\1>|<[^>]*>|(?<![^/]/)(?:{ENCODED.pattern})", re.DOTALL
)


class Page(Template):
    def render(self, *args: Any, **kwargs: Any) -> str:
        page = super().render(*args, **kwargs)
        return _PARTS.sub(_readable, page) if "xn--" in page else page


def _readable(part: re.Match[str]) -> str:
    return part[0] if part[0].startswith("<") else readable_label(part[0])


def init_app(app: Flask) -> None:
    app.jinja_env.template_class = Page
    app.jinja_env.filters["as_written"] = unquote  # of a short URL, whose alias has no other characters
