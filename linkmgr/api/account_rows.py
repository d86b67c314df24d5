"""Rows of an exported account. They are checked as those of the create of their kind."""

from collections.abc import Callable

from linkmgr.api import bio as bio_api
from linkmgr.api import campaigns as campaigns_api
from linkmgr.api import channels as channels_api
from linkmgr.api import domains as domains_api
from linkmgr.api import overlay as overlay_api
from linkmgr.api import pixels as pixels_api
from linkmgr.api import qr as qr_api
from linkmgr.api import splash as splash_api
from linkmgr.db.statements import Row
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import load
from linkmgr.fields.urls import MAX_URL
from linkmgr.outbound import domain_check
from linkmgr.qr import logos
from linkmgr.repository import bio, campaigns, channels, domains, overlay, pixels, qr, splash
from linkmgr.web.errors import AppError


def check_domain(record: Row) -> bool:
    """Check that a domain points to this service. Return False if the check is off."""
    return domain_check.check(load(domains_api.NewDomain, record)["domain"])


def _domain(user_id: int, record: Row) -> int:
    """Add a domain with the image of its logo, instead of fetching it again. `is_checked` is set by the import."""
    new = load(domains_api.NewDomain, record)
    logo = logos.decode(record["image"]) if record.get("image") else b""
    if not logo:
        new.pop("brandlogo", None)
    return domains.add(user_id, logo=logo, is_checked=record["is_checked"], **new)


def _campaign(user_id: int, record: Row) -> int:
    return int(campaigns.add(user_id, **load(campaigns_api.NewCampaign, record))["id"])


def _channel(user_id: int, record: Row) -> int:
    return int(channels.add(user_id, **load(channels_api.NewChannel, record))["id"])


def _qr(user_id: int, record: Row) -> int:
    """Add a QR code under the same code, unless it is None. The image of its logo follows."""
    new = load(qr_api.NewQr, record | {"logo": None})
    source = record.get("logo")
    if isinstance(source, str) and len(source) > MAX_URL:
        raise AppError("invalid", problems=f"logo must be at most {MAX_URL:,} characters")
    code = record["code"] or qr_data.new_code()
    logo_source = source if isinstance(source, str) else None
    return int(qr.add(user_id, code=code, logo_source=logo_source, **qr_api.to_row(new))["id"])


def _bio(user_id: int, record: Row) -> int:
    new = load(bio_api.NewBio, record)
    return int(bio.add(user_id, custom=bool(record.get("custom")), **new)["id"])


ADD: dict[str, Callable[[int, Row], int]] = {
    "domains": _domain,
    "campaigns": _campaign,
    "channels": _channel,
    "pixels": lambda user_id, record: pixels.add(user_id, **load(pixels_api.NewPixel, record)),
    "splash": lambda user_id, record: splash.add(user_id, **load(splash_api.NewSplash, record)),
    "overlays": lambda user_id, record: overlay.add(user_id, **load(overlay_api.NewOverlay, record)),
    "qr": _qr,
    "bio": _bio,
}
