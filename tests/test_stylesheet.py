"""The contrast of the colors in the style sheet, light and dark (WCAG 2: at least 4.5 to 1)."""

import re

import pytest

from tests.conftest import ROOT

# Text colors and their background colors.
PAIRS = [
    ("text", "page"),
    ("text", "surface"),
    ("text", "sunken"),
    ("muted", "page"),
    ("muted", "surface"),
    ("muted", "sunken"),
    ("accent", "page"),
    ("accent", "surface"),
    ("accent-hover", "surface"),
    ("on-accent", "accent"),
    ("on-accent", "accent-hover"),
    ("good", "good-surface"),
    ("good", "surface"),
    ("bad", "bad-surface"),
    ("surface", "bad"),
]


def schemes() -> dict[str, dict[str, str]]:
    style = (ROOT / "linkmgr/static/style.css").read_text()
    light, dark = (dict(re.findall("--([a-z-]+): #([0-9a-f]{6});", part)) for part in style.split("@media", 2)[:2])
    return {"light": light, "dark": dark}


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "behind"), PAIRS)
def test_text_has_enough_contrast(scheme: str, text: str, behind: str) -> None:
    colors = schemes()[scheme]
    darker, lighter = sorted(luminance(colors[name]) for name in (text, behind))
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5
