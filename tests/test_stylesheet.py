"""The contrast of the colors in the style sheet, light and dark (WCAG 2: at least 4.5 to 1)."""

import re

import pytest

from tests.conftest import ROOT
from tests.readme_pictures import FOLDER, drawn_from
from tests.support.pages import contrast

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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "behind"), PAIRS)
def test_text_has_enough_contrast(scheme: str, text: str, behind: str) -> None:
    colors = schemes()[scheme]
    assert contrast(colors[text], colors[behind]) >= 4.5


def test_the_pictures_of_the_readme_are_drawn_from_the_templates_and_style_sheets_of_today() -> None:
    assert (FOLDER / "pictures.txt").read_text() == drawn_from(), "run: make picture"
