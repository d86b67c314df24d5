"""Contrast of colors (WCAG 2).

Colors of QR codes and overlays that are too close are refused, with better ones.
"""

import re
from contextlib import suppress
from typing import Any

from linkmgr.errors import AppError

Parts = tuple[int, ...]

MIN_CONTRAST = 3
MIN_SCANNED = 1.5  # of a QR code: cameras do not tell closer colors apart
_WEIGHTS = (0.2126, 0.7152, 0.0722)
_BLACK, _WHITE = 0, 255


def parts_of(color: str) -> Parts:
    """Return red, green and blue of `#rgb`, `#rrggbb` or `rgb(r,g,b)`."""
    if not color.startswith("#"):
        return tuple(map(int, color.removeprefix("rgb(").removesuffix(")").split(",")))
    digits = color[1:]
    digits = "".join(digit * 2 for digit in digits) if len(digits) == len("rgb") else digits
    return tuple(bytes.fromhex(digits))


def _luminance(parts: Parts) -> float:
    values = (part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts)  # noqa: PLR2004
    return sum(weight * value for weight, value in zip(_WEIGHTS, values, strict=True))


def contrast(first: Parts, second: Parts) -> float:
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def readable(color: str, against: str) -> str:
    """Return the color that is nearest to `color`, has its hue, and has enough contrast with the other one.

    It is mixed with black or white, whichever needs less of it, and has the notation of `color`.
    """
    parts, other = parts_of(color), parts_of(against)
    mixed = (
        tuple(round(part + (end - part) * percent / 100) for part in parts)
        for percent in range(101)
        for end in (_BLACK, _WHITE)
    )
    better = next(candidate for candidate in mixed if contrast(candidate, other) >= MIN_CONTRAST)
    return f"#{bytes(better).hex()}" if color.startswith("#") else f"rgb({','.join(map(str, better))})"


def better(color: str, background: str) -> dict[str, str]:
    """Return a better color for each of the two, if the other one stays."""
    return {"color": readable(color, background), "background": readable(background, color)}


def check(code: str, minimum: float, color: str, background: str) -> None:
    """Raise an error that names better colors if the contrast is below the minimum."""
    if contrast(parts_of(color), parts_of(background)) < minimum:
        raise AppError(code, **better(color, background))


def is_close(color: str, background: str) -> bool:
    """Return True if a QR code in these colors cannot be scanned by all cameras."""
    return contrast(parts_of(color), parts_of(background)) < MIN_CONTRAST


def rating(color: str, background: str) -> dict[str, Any]:
    """Return the contrast of a color with the one behind it, the nearest color that suffices, and which is lighter."""
    front, back = parts_of(color), parts_of(background)
    return {
        "contrast": contrast(front, back),
        "minimum": MIN_CONTRAST,
        "is_refused": contrast(front, back) < MIN_SCANNED,
        "better": to_hex(readable(color, background)),
        "is_inverted": _luminance(front) > _luminance(back),
    }


def to_hex(color: str) -> str:
    """Return the color as inputs of browsers have it, or "" if it is none."""
    with suppress(ValueError):
        return f"#{bytes(parts_of(color)).hex()}"
    return ""


def to_rgb(color: str) -> str:
    """Return `#rrggbb` as `rgb(r,g,b)`, and any other text unchanged."""
    return f"rgb({','.join(map(str, parts_of(color)))})" if re.fullmatch("#[0-9A-Fa-f]{6}", color) else color
