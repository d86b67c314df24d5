"""Scripts of each type of pixel, and the hosts that the page's Content-Security-Policy must allow for them.

static/pixels.js passes the tags to the scripts. A Tag Manager container gets no nonce, so that custom code in it does
not run on our pages; it may load only from the hosts listed here.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import quote

_TAG_MANAGER = "https://www.googletagmanager.com"
_ANALYTICS = ("https://*.google-analytics.com", "https://*.analytics.google.com", "https://*.googletagmanager.com")
_ADS = (
    "https://www.google.com",
    "https://www.googleadservices.com",
    "https://googleads.g.doubleclick.net",
    "https://pagead2.googlesyndication.com",
)


class Vendor(NamedTuple):
    """URL templates and hosts of a vendor. {tag} is the user's tag, {first} and {rest} its parts around '/' or ':'."""

    script: str
    endpoints: tuple[str, ...] = ()  # hosts that receive requests and images
    scripts: tuple[str, ...] = ()  # hosts of further scripts, besides the host of `script`
    frames: tuple[str, ...] = ()
    images: tuple[str, ...] = ()  # images for browsers without scripts
    frame: str = ""  # page for browsers without scripts, for vendors without an image


VENDORS = {
    "gtmpixel": Vendor(
        f"{_TAG_MANAGER}/gtm.js?id={{tag}}",
        endpoints=(*_ANALYTICS, "https://www.google.com"),
        frames=(_TAG_MANAGER,),
        frame=f"{_TAG_MANAGER}/ns.html?id={{tag}}",
    ),
    "gapixel": Vendor(f"{_TAG_MANAGER}/gtag/js?id={{tag}}", endpoints=_ANALYTICS),
    "fbpixel": Vendor(
        "https://connect.facebook.net/en_US/fbevents.js",
        endpoints=("https://www.facebook.com", "https://connect.facebook.net"),
        images=("https://www.facebook.com/tr?id={tag}&ev=PageView&noscript=1",),
    ),
    "adwordspixel": Vendor(
        f"{_TAG_MANAGER}/gtag/js?id={{first}}",
        endpoints=(*_ADS, _TAG_MANAGER),
        scripts=_ADS[:3],
        frames=("https://td.doubleclick.net", _TAG_MANAGER),
        images=("https://www.googleadservices.com/pagead/conversion/{number}/?label={rest}&guid=ON&script=0",),
    ),
    "linkedinpixel": Vendor(
        "https://snap.licdn.com/li.lms-analytics/insight.min.js",
        endpoints=("https://px.ads.linkedin.com", "https://px4.ads.linkedin.com", "https://www.linkedin.com"),
        images=("https://px.ads.linkedin.com/collect/?pid={tag}&fmt=gif",),
    ),
    "twitterpixel": Vendor(
        "https://static.ads-twitter.com/uwt.js",
        endpoints=("https://analytics.twitter.com", "https://t.co", "https://ads-api.x.com"),
        images=(
            "https://analytics.twitter.com/i/adsct?txn_id={tag}&p_id=Twitter",
            "https://t.co/i/adsct?txn_id={tag}&p_id=Twitter",
        ),
    ),
    "adrollpixel": Vendor(
        "https://s.adroll.com/j/{first}/roundtrip.js",
        endpoints=("https://d.adroll.com", "https://s.adroll.com"),
        scripts=("https://d.adroll.com",),
    ),
    "quorapixel": Vendor(
        "https://a.quora.com/qevents.js",
        endpoints=("https://q.quora.com",),
        images=("https://q.quora.com/_/ad/{tag}/pixel?tag=ViewContent&noscript=1",),
    ),
    "pinterest": Vendor(
        "https://s.pinimg.com/ct/core.js",
        endpoints=("https://ct.pinterest.com",),
        scripts=("https://ct.pinterest.com",),
        frames=("https://ct.pinterest.com",),
        images=("https://ct.pinterest.com/v3/?event=init&tid={tag}&noscript=1",),
    ),
    "bing": Vendor(
        "https://bat.bing.com/bat.js",
        endpoints=("https://bat.bing.com", "https://bat.bing.net"),
        images=("https://bat.bing.com/action/0?ti={tag}&Ver=2",),
    ),
    "snapchat": Vendor(
        "https://sc-static.net/scevent.min.js",
        endpoints=("https://tr.snapchat.com", "https://tr-shadow.snapchat.com", "https://pixel.tapad.com"),
        scripts=("https://tr.snapchat.com",),
        frames=("https://tr.snapchat.com",),
    ),
    "reddit": Vendor(
        "https://www.redditstatic.com/ads/pixel.js",
        endpoints=(
            "https://alb.reddit.com",
            "https://pixel-config.reddit.com",
            "https://conversions-config.reddit.com",
            "https://www.redditstatic.com",
        ),
    ),
    "tiktok": Vendor(
        "https://analytics.tiktok.com/i18n/pixel/events.js?sdkid={tag}&lib=ttq",
        endpoints=("https://analytics.tiktok.com", "https://analytics-ipv6.tiktokw.us"),
        scripts=("https://analytics-ipv6.tiktokw.us",),
    ),
}


class Pixel(NamedTuple):
    """A user's pixel with its expanded URLs."""

    vendor: Vendor
    type: str
    tag: str
    script: str
    images: list[str]
    frame: str


def pixel(kind: str, tag: str) -> Pixel:
    first, *rest = re.split("[/:]", tag, maxsplit=1)
    number = first.upper().removeprefix("AW-")
    parts = {"tag": tag, "first": first, "rest": "".join(rest), "number": number}
    encoded = {name: quote(part, safe="") for name, part in parts.items()}
    vendor = VENDORS[kind]
    images = [image.format(**encoded) for image in vendor.images]
    return Pixel(vendor, kind, tag, vendor.script.format(**encoded), images, vendor.frame.format(**encoded))


def pixels(rows: list[dict[str, Any]] | None) -> list[Pixel]:
    return [pixel(row["type"], row["tag"]) for row in rows or []]


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def sources(loaded: list[Pixel]) -> dict[str, list[str]]:
    """Return the hosts that a page with these pixels must allow, by directive of its policy."""
    vendors = [pixel.vendor for pixel in loaded]
    return {
        "script-src": [source for vendor in vendors for source in (_origin(vendor.script), *vendor.scripts)],
        "img-src": [source for vendor in vendors for source in (*vendor.endpoints, *map(_origin, vendor.images))],
        "connect-src": [source for vendor in vendors for source in vendor.endpoints],
        "frame-src": [source for vendor in vendors for source in vendor.frames],
    }
