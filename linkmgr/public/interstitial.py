"""Pages that a visitor of a short link sees before the target: splash page, frame, overlay and
pixels.

Browsers do not report that a site refuses to be framed. Fetching the target to find out would be
slow and could return another response than the visitor gets. Therefore a plain link to the target
stands above every frame.

These pages share the origin of the service, and with it the visitor's session. Therefore they run
no third-party scripts. Pixel scripts run in a frame without an origin (see `pixel_page`).
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from flask import make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from linkmgr.core.database.statements import Row
from linkmgr.core.errors import AppError
from linkmgr.core.fields import colors
from linkmgr.core.fields.base import Target
from linkmgr.core.settings import settings
from linkmgr.core.web import security_headers
from linkmgr.public import overlay_answers, pixel_tags
from linkmgr.schemas.overlay import list_choices, split_image
from linkmgr.schemas.splash import Splash

_EXAMPLE = "https://example.com/"  # the target of previews
# Those of overlays too
_URLS = [name for name, field in Splash().fields.items() if isinstance(field, Target)]
_COLOR = re.compile("#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?=[/?#]|\Z)", re.IGNORECASE)


def respond(link: Row, target: str) -> ResponseReturnValue:
    if urlsplit(target).scheme not in ("http", "https"):
        raise AppError("no_such_page")
    match link["type"]:
        case "splash":
            return _splash(link, target)
        case "overlay" if link["overlay"]:
            return _overlay(link, target, link["overlay"])
        case "overlay" | "frame" if _can_be_framed(target):
            return _page("go_frame.html", link, target)
        case _ if link["pixels"]:
            return _page("go_pixels.html", link, target)
        case _:
            return _private(redirect(target, code=302))


def _splash(link: Row, target: str) -> Response:
    splash = link["splash"] or Splash.defaults()
    return _page("go_splash.html", link, target, images=[splash["banner"]], splash=splash)


def _overlay(link: Row, target: str, overlay: Row) -> Response:
    image, caption = split_image(overlay["message"])
    is_image = overlay["type"] == "image" and _is_http(image)
    return _page(
        "go_overlay.html",
        link,
        target,
        images=[image] if is_image else [],
        overlay=overlay,
        message=caption if is_image else overlay["message"],
        image=image if is_image else "",
        choices=list_choices(overlay["message"]) if overlay["type"] == "poll" else (),
        ink=_color(overlay["color"], "#ffffff"),
        paper=_color(overlay["background"], "#1d4ed8"),
        sealed=overlay_answers.sealed(link["user_id"], overlay["id"], target),
    )


def _page(template: str, link: Row, target: str, images: Sequence[str] = (), **members: object) -> Response:
    host = urlsplit(target).hostname
    is_preview = "preview" in link
    framed = template in ("go_frame.html", "go_overlay.html") and _can_be_framed(target) and not is_preview
    page = render_template(
        template,
        title=link["metatitle"] or host,
        target=target,
        host=host,
        framed=framed,
        is_preview=is_preview,
        contrast=link.get("contrast"),
        pixels=url_for("short.pixels", alias=link["alias"]) if link["pixels"] else None,
        **members,
    )
    framing = {"frame_ancestors": "'self'", "sandbox": "allow-same-origin"} if is_preview else {}
    policy = security_headers.written(
        style_src=f"'self' {_nonce()}",
        script_src=_nonce(),
        img_src=" ".join(dict.fromkeys(["'self'", "data:", *map(_source, filter(_is_http, images))])),
        connect_src="'self'",
        # Visitors can navigate inside the frame to any site.
        frame_src="http: https:" if framed else "'self'" if link["pixels"] else "'none'",
        **framing,
    )
    return _private(page, policy)


def pixel_page(link: Row) -> Response:
    """The policy removes the origin of this page, also when it is opened outside the frame. Its
    scripts can neither read cookies nor access other pages of the service, and they cannot submit
    forms, open windows or navigate."""
    pixels = [pixel_tags.pixel(row["type"], row["tag"]) for row in link["pixels"]]
    # Vendors report the title. This page asks for no password, so it must not reveal the title of a
    # protected link.
    title = (not link["password_hash"] and link["metatitle"]) or link["alias"]
    policy = security_headers.written(
        sandbox="allow-scripts",
        style_src="'none'",
        script_src=f"{_nonce()} {pixel_tags.sources('script-src', pixels)}",
        img_src=pixel_tags.sources("img-src", pixels),
        connect_src=pixel_tags.sources("connect-src", pixels),
        frame_src=pixel_tags.sources("frame-src", pixels) or "'none'",
        form_action="'none'",
        frame_ancestors="'self'",
    )
    return _private(render_template("pixels.html", pixels=pixels, title=title), policy)


def preview(page: str, members: Row) -> Response:
    """Render a splash page or an overlay as visitors see it, for a frame of the console. It runs no
    scripts, sends no forms and redirects nowhere."""
    members = members | {name: "" for name in _URLS if not _is_http(str(members.get(name, "")))}
    link: Row = {"metatitle": "", "pixels": None, "splash": members, "user_id": 0, "preview": True}
    if page == "splash":
        return _splash(link, _EXAMPLE)
    text, background = (_color(members[name], "#000") for name in ("color", "background"))
    return _overlay(link | {"contrast": colors.contrast(text, background)}, _EXAMPLE, members | {"id": 0})


def _private(page: ResponseReturnValue, policy: str = "") -> Response:
    response = make_response(page)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "strict-origin-when-cross-origin"
    if policy:
        response.headers["Content-Security-Policy"] = policy
    return response


def _nonce() -> str:
    return f"'nonce-{security_headers.nonce()}'"


def _is_http(address: str) -> bool:
    return address.lower().startswith(("http://", "https://")) and not re.search(r"\s", address)


def _source(address: str) -> str:
    """Return the origin of a URL, or only its scheme if a policy cannot express the host, as for
    IPv6."""
    origin = _ORIGIN.match(address)
    return origin[0] if origin else f"{address.split(':', 1)[0]}:"


def _can_be_framed(target: str) -> bool:
    """Return False for plain HTTP inside HTTPS, which browsers block."""
    return target.startswith("https:") or not (request.is_secure or settings().is_https)


def _color(text: str, default: str) -> str:
    return text if _COLOR.fullmatch(text) else default
