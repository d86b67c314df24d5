"""Rows of an exported account. They are checked as those of the create of their kind."""

from collections.abc import Callable

from linkmgr.db.statements import Row
from linkmgr.errors import AppError
from linkmgr.fields import qr as qr_data
from linkmgr.fields.base import load
from linkmgr.fields.urls import MAX_URL
from linkmgr.outbound import domain_check
from linkmgr.qr import logos
from linkmgr.repository import qr
from linkmgr.resources.bio import BioPage
from linkmgr.resources.campaigns import Campaign
from linkmgr.resources.channels import Channel
from linkmgr.resources.domains import Domain
from linkmgr.resources.overlay import Overlay
from linkmgr.resources.pixels import Pixel
from linkmgr.resources.qr import QrCode
from linkmgr.resources.splash import Splash


def check_domain(record: Row) -> bool:
    """Check that a domain points to this service. Return False if the check is off."""
    return domain_check.check(load(Domain.creates(), record)["domain"])


def _domain(user_id: int, record: Row) -> int:
    """Add a domain with the image of its logo, instead of fetching it again. `is_checked` is set by the import."""
    new = load(Domain.creates(), record)
    image = logos.decode(record["image"]) if record.get("image") else b""
    if not image:
        new["brandlogo"] = ""
    return int(Domain.add_checked(user_id, new, is_checked=record["is_checked"], image=image)["id"])


def _qr(user_id: int, record: Row) -> int:
    """Add a QR code under the same code, unless it is None. The image of its logo follows."""
    new = load(QrCode.creates(), record | {"logo": None})
    source = record.get("logo")
    if isinstance(source, str) and len(source) > MAX_URL:
        raise AppError("invalid", problems=f"logo must be at most {MAX_URL:,} characters")
    code = record["code"] or qr_data.new_code()
    logo_source = source if isinstance(source, str) else None
    return int(qr.add(user_id, code=code, logo_source=logo_source, **QrCode.to_row(new))["id"])


def _bio(user_id: int, record: Row) -> int:
    new = load(BioPage.creates(), record) | {"custom": bool(record.get("custom"))}
    return int(BioPage.create(user_id, new)["id"])


ADD: dict[str, Callable[[int, Row], int]] = {
    "domains": _domain,
    "campaigns": Campaign.add,
    "channels": Channel.add,
    "pixels": Pixel.add,
    "splash": Splash.add,
    "overlays": Overlay.add,
    "qr": _qr,
    "bio": _bio,
}
