"""Contrast of colors (WCAG 2).

Colors of QR codes and overlays that are too close are refused, with better ones. Accent colors are
those of the operator and of branded domains. Text in them must be readable.
"""

import re
from contextlib import suppress
from typing import Any

from PIL import ImageColor

from linkmgr.core.errors import AppError

Parts = tuple[int, ...]

MIN_CONTRAST = 3
MIN_SCANNED = 1.5  # of a QR code: cameras do not tell closer colors apart
_WEIGHTS = (0.2126, 0.7152, 0.0722)
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)
_ACCENT_CONTRAST = 4.5
_LIGHT, _DARK = "#f5f6fa", "#171a23"  # of style.css: the darkest light surface and the lightest dark one
_STYLE = """\
:root { --accent: %s; --accent-hover: %s; --on-accent: #ffffff; --glow: rgb(%s / 14%%); }
@media (prefers-color-scheme: dark) {
  :root { --accent: %s; --accent-hover: %s; --on-accent: #10131c; --glow: rgb(%s / 16%%); }
}
"""


def parts_of(color: str) -> Parts:
    return ImageColor.getrgb(color)[:3]


def _luminance(parts: Parts) -> float:
    values = (part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts)  # noqa: PLR2004
    return sum(weight * value for weight, value in zip(_WEIGHTS, values, strict=True))


def contrast(first: str, second: str) -> float:
    dark, light = sorted((_luminance(parts_of(first)), _luminance(parts_of(second))))
    return (light + 0.05) / (dark + 0.05)


def _mixed(color: str, other: Parts, percent: int) -> str:
    pairs = zip(parts_of(color), other, strict=True)
    parts = [round(part + (added - part) * percent / 100) for part, added in pairs]
    return f"#{bytes(parts).hex()}" if color.startswith("#") else f"rgb({','.join(map(str, parts))})"


def readable(color: str, against: str) -> str:
    """Return the color that is nearest to `color`, has its hue, and has enough contrast with the
    other one.

    It is mixed with black or white, whichever needs less of it, and has the notation of `color`.
    """
    mixed = (_mixed(color, end, percent) for percent in range(101) for end in (_BLACK, _WHITE))
    return next(candidate for candidate in mixed if contrast(candidate, against) >= MIN_CONTRAST)


def check_text(color: str, background: str) -> None:
    if contrast(color, background) < MIN_CONTRAST:
        better = {"color": readable(color, background), "background": readable(background, color)}
        raise AppError("overlay_colours_too_close", **better)


def is_inverted(color: str, background: str) -> bool:
    return _luminance(parts_of(color)) > _luminance(parts_of(background))


def dark_on_light(color: str, background: str) -> tuple[str, str]:
    """Return colors of a QR code and its background that all readers can scan: the two, swapped if
    they are inverted, with a darker code or, if black is not enough, a lighter background."""
    dark, light = (background, color) if is_inverted(color, background) else (color, background)
    darker = ((_mixed(dark, _BLACK, percent), light) for percent in range(101))
    lighter = ((dark, _mixed(light, _WHITE, percent)) for percent in range(101))
    return next(pair for pair in (*darker, *lighter) if contrast(*pair) >= MIN_CONTRAST)


def scan_advice(color: str, background: str) -> dict[str, str]:
    pairs = zip(
        ("foreground", "background"), (color, background), dark_on_light(color, background), strict=True
    )
    return {"change": " and ".join(f"{name} to {better}" for name, old, better in pairs if better != old)}


def rating(color: str, background: str) -> dict[str, Any]:
    return {
        "contrast": contrast(color, background),
        "minimum": MIN_CONTRAST,
        "is_refused": contrast(color, background) < MIN_SCANNED,
        "is_inverted": is_inverted(color, background),
        "better": [to_hex(better) for better in dark_on_light(color, background)],
    }


def to_hex(color: str) -> str:
    with suppress(ValueError):
        return f"#{bytes(parts_of(color)).hex()}"
    return ""


def to_rgb(color: str) -> str:
    return f"rgb({','.join(map(str, parts_of(color)))})" if re.fullmatch("#[0-9A-Fa-f]{6}", color) else color


def accent_problem(light: str, dark: str = "") -> str:
    """Return the end of a sentence that begins with the name of the color, or "" if pages stay
    readable."""
    for color, surface, change, pages in (
        (light, _LIGHT, "darker", "light"),
        (dark, _DARK, "lighter", "dark"),
    ):
        if color and (actual := contrast(color, surface)) < _ACCENT_CONTRAST:
            return (
                f"must be {change}: on {pages} pages, {color} has a contrast of {actual:.1f} to 1 "
                f"and needs {_ACCENT_CONTRAST} to 1"
            )
    return ""


def accent_style(light: str, dark: str = "") -> bytes:
    lighter = (_mixed(light, _WHITE, percent) for percent in range(0, 101, 5))
    dark = dark or next(color for color in lighter if contrast(color, _DARK) >= _ACCENT_CONTRAST)
    values = [
        value
        for color, other in ((light, _BLACK), (dark, _WHITE))
        for value in (_mixed(color, other, 0), _mixed(color, other, 20), " ".join(map(str, parts_of(color))))
    ]
    return (_STYLE % tuple(values)).encode()
