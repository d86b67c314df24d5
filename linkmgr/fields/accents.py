"""Accent colors of the operator and of branded domains. Text in these colors must be readable."""

from linkmgr.fields import colors

_MIN_CONTRAST = 4.5
# Colors of style.css: the darkest light surface and the lightest dark one, and the text on the accent color.
_LIGHT, _DARK, _WHITE, _BLACK = "#f5f6fa", "#171a23", "#ffffff", "#000000"
_STYLE = """\
:root { --accent: %s; --accent-hover: %s; --on-accent: #ffffff; --glow: rgb(%s / 14%%); }
@media (prefers-color-scheme: dark) {
  :root { --accent: %s; --accent-hover: %s; --on-accent: #10131c; --glow: rgb(%s / 16%%); }
}
"""


def _contrast(first: str, second: str) -> float:
    return colors.contrast(colors.parts_of(first), colors.parts_of(second))


def _mixed(color: str, other: str, share: float) -> str:
    pairs = zip(colors.parts_of(color), colors.parts_of(other), strict=True)
    return "#" + "".join(f"{round(own + (added - own) * share):02x}" for own, added in pairs)


def _for_dark_pages(color: str) -> str:
    """Lighten a color until it can be read on dark pages."""
    return next(
        light for step in range(21) if _contrast(light := _mixed(color, _WHITE, step / 20), _DARK) >= _MIN_CONTRAST
    )


def problem(light: str, dark: str = "") -> str:
    """Return the end of a sentence that begins with the name of the color, or "" if pages stay readable."""
    for color, surface, change, pages in ((light, _LIGHT, "darker", "light"), (dark, _DARK, "lighter", "dark")):
        if color and (contrast := _contrast(color, surface)) < _MIN_CONTRAST:
            return (
                f"must be {change}: on {pages} pages, {color} has a contrast of {contrast:.1f} to 1 and needs "
                f"{_MIN_CONTRAST} to 1"
            )
    return ""


def style(light: str, dark: str = "") -> bytes:
    """Return a style sheet with the color, for light and for dark pages."""
    values = [
        value
        for color, other in ((light, _BLACK), (dark or _for_dark_pages(light), _WHITE))
        for value in (_mixed(color, other, 0), _mixed(color, other, 0.2), " ".join(map(str, colors.parts_of(color))))
    ]
    return (_STYLE % tuple(values)).encode()
