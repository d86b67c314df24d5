"""/<alias>: short links and bio pages.  /<alias>/qr: the picture of a link.  /<alias>/pixels: its pixels."""

from http import HTTPStatus

from flask import Blueprint, Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from linkmgr.db.statements import Row
from linkmgr.fields.base import query_text
from linkmgr.pages import attempts, bio, branded, interstitial, loops, qr
from linkmgr.qr import image as qr_image
from linkmgr.qr.cache import image_cache
from linkmgr.repository import public
from linkmgr.visits import geoip, record, targets
from linkmgr.web import client_address, security_headers
from linkmgr.web.errors import AppError

bp = Blueprint("short", __name__)

_FORM = ("GET", "POST")


@bp.after_request
def _disable_caching(response: Response) -> Response:
    """Every visit, so that it is counted and sees what the link is by then."""
    response.headers.setdefault("Cache-Control", "no-store")
    return response


@bp.route("/<alias:alias>", methods=_FORM)
def visit(alias: str) -> ResponseReturnValue:
    link = public.short_link(branded.host(), alias)
    if link is None:
        return _bio(alias)
    if link["expired"]:
        return render_template("link_expired.html"), HTTPStatus.GONE
    if link["password_hash"] or request.method == "POST":
        return _locked(link)
    if _shows_preview(link):
        return render_template("link_preview.html", link=link, address=_address(link))
    return redirect_visitor(link)


def _bio(alias: str) -> ResponseReturnValue:
    found = public.bio(branded.host(), alias)
    if found is None:
        raise NotFound
    return bio.show(found)


def _address(link: Row) -> str:
    return f"{link['base']}/{link['alias']}"


def _agent() -> str:
    return request.headers.get("User-Agent", "")[: record.MAX_AGENT]


def _shows_preview(link: Row) -> bool:
    described = link["title"] or link["metadescription"] or link["metaimage"]
    return bool(described) and targets.is_crawler(_agent())


# --- leading on


def redirect_visitor(link: Row) -> ResponseReturnValue:
    chosen, store = _target(link), _store(link)
    onward = store or chosen
    loops.refuse(onward, branded=link["url_branded"] or onward != link["url"])
    record.record(link["id"], link["user_id"])
    target = targets.with_parameters(chosen, link["parameters"])
    if link["type"] != "direct" or link["pixels"]:
        return interstitial.respond(link, store or target)
    if store:
        return render_template("link_app.html", store=store, target=target)
    # Without the page that werkzeug's redirect() makes for who does not follow.
    status = HTTPStatus.SEE_OTHER if request.method == "POST" else HTTPStatus.FOUND
    return Response(status=status, headers={"Location": target})


def _target(link: Row) -> str:
    """Device before country before language before default."""
    return (
        (link["devices"] and targets.first_match(link["devices"], targets.device_names(_agent())))
        or (link["locations"] and targets.first_match(link["locations"], targets.country_names(_country())))
        or (link["languages"] and targets.first_match(link["languages"], targets.language_names(_languages())))
        or str(link["url"])
    )


def _store(link: Row) -> str | None:
    """The address of the app in the visitor's store.  A frame shows the site instead."""
    if not link["deeplink"] or link["type"] in ("frame", "overlay"):
        return None
    return targets.app_store_url(link["deeplink"], _agent())


@loops.hop("short.visit")
def _onward(host: str | None, alias: str) -> str | None:
    link = public.short_link(host, alias)
    if link is None:
        if public.bio(host, alias) is None:
            raise NotFound
        return None
    if link["expired"] or link["password_hash"]:
        return None
    return _store(link) or _target(link)


def _country() -> geoip.Country:
    return geoip.find_country(client_address.address())


def _languages() -> list[str]:
    return [code for code, quality in request.accept_languages if quality > 0]


# --- the password


def _locked(link: Row) -> ResponseReturnValue:
    if not link["password_hash"]:  # the owner took it away while the visitor looked at the form
        return redirect(url_for(".visit", alias=link["alias"]), code=303)
    if request.method != "POST":
        return _form()
    # No limit over all IP addresses: a stranger could lock out every visitor.
    limit = attempts.by_sender(f"link {link['id']}")
    if attempts.matches(request.form.get("password", ""), link["password_hash"], limit):
        return redirect_visitor(link)
    wrong = AppError("link_password_wrong")
    return _form(wrong.message), wrong.status


def _form(problem: str | None = None) -> Response:
    response = Response(render_template("link_password.html", problem=problem))
    # The answer to the form leads to other sites, which browsers take for a place that the form is sent to.
    response.headers["Content-Security-Policy"] = security_headers.POLICY.replace("form-action 'self'", "form-action *")
    return response


# --- the pixels


@bp.get("/<alias:alias>/pixels")
def pixels(alias: str) -> ResponseReturnValue:
    """The frame in the page of a link that runs the scripts of its pixels."""
    link = public.short_link(branded.host(), alias)
    if link is None or link["expired"] or not link["pixels"]:
        raise NotFound
    return interstitial.pixel_page(link)


# --- the picture


@bp.get("/<alias:alias>/qr")
@bp.get("/<alias:alias>/qr/<size>")
def picture(alias: str, size: str | None = None) -> Response:
    """A plain QR code of the short URL.  A size in the path takes precedence."""
    link = public.short_link(branded.host(), alias)
    if link is None:
        raise AppError("image_missing")
    form, max_pixels = qr.form(), qr.pixels(size or query_text("size"))
    wanted = qr_image.image_spec(
        _address(link), "rgb(0,0,0)", "rgb(255,255,255)", None, form=form, max_pixels=max_pixels
    )
    if request.if_none_match.contains_weak(wanted.tag):
        return qr.answer(wanted, b"", status=304)
    return qr.answer(wanted, image_cache().get(wanted.tag) or qr.draw(wanted, None))
