import random
from itertools import cycle
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageColor

from linkmgr.core.fields.qr import payload
from linkmgr.qr import image as qr_image
from linkmgr.qr.image import render
from linkmgr.schemas.qr import BLACK, WHITE
from tests.conftest import BASE_URL, Client
from tests.support.codes import DATA, add_code, clear_cache, code_of, decoded, fetched, pixels, row_of
from tests.support.factories import Sql
from tests.support.logos import LOGOS, logo_file

pytestmark = pytest.mark.slow

COLORS = {
    "dark on light": {},
    "colored": {"foreground": "rgb(140,0,60)", "background": "rgb(255,236,150)"},
    "light on dark": {"foreground": "rgb(255,255,255)", "background": "rgb(0,40,90)"},
    "just enough": {"foreground": "rgb(148,148,148)"},
}
WIFI = r"WIFI:T:WPA;S:Home\; sweet;P:p\:a\"ss\,w\\rd;;"
# The longest data that must fit into one image.
MAX_WIFI = {"ssid": ";" * 32, "encryption": "WPA", "password": '"' * 64}


def fits(image: Image.Image, size: int) -> bool:
    """Return True if the image is a square of whole modules that is not much smaller."""
    return image.width == image.height and size - 120 < image.width <= size


@pytest.mark.parametrize(("type_", "form"), list(zip(DATA, cycle(qr_image.FORMATS), strict=False)))
def test_the_image_of_each_type_can_be_decoded(alice: Client, type_: str, form: str) -> None:
    path = add_code(alice, type_, logo=logo_file(alice, "noise"))
    expected = WIFI if type_ == "wifi" else f"{BASE_URL}/q/{code_of(path)}"
    # A wireless network and its password in a code with a logo need more than 64 modules.
    for size in (None, 80 if type_ == "wifi" else 64, 200, *([2048] if type_ == "text" else [])):
        answer = fetched(alice, f"{path}?format={form}" + (f"&size={size}" if size else ""))
        assert (answer.status_code, answer.mimetype) == (200, qr_image.FORMATS[form])
        image = pixels(answer.data, form)
        assert fits(image, size or qr_image.DEFAULT_SIZE)
        found = decoded(image)
        assert (found.text, found.ec_level) == (expected, "H")


# Each two of colors, logo, format and size are combined once, or more often.
SIZES = (64, 200, qr_image.DEFAULT_SIZE)
PAIRS = [
    (colors, logo, [*qr_image.FORMATS][(column + row) % len(qr_image.FORMATS)], SIZES[(2 * column + row) % len(SIZES)])
    for row, colors in enumerate(COLORS)
    for column, logo in enumerate([None, *LOGOS])
]


@pytest.mark.parametrize(("colors", "logo", "form", "size"), PAIRS)
def test_codes_with_colors_and_logos_can_be_decoded(
    *, alice: Client, colors: str, logo: str | None, form: str, size: int
) -> None:
    sent = COLORS[colors] | ({"logo": logo_file(alice, logo)} if logo else {})
    path = add_code(alice, **sent)
    background = ImageColor.getrgb(sent.get("background", WHITE))
    image = pixels(fetched(alice, f"{path}?format={form}&size={size}").data, form)
    assert image.getpixel((0, 0)) == image.getpixel((image.width - 1, image.height - 1)) == background
    assert decoded(image).text == f"{BASE_URL}/q/{code_of(path)}"


def test_codes_with_a_logo_can_be_decoded_for_any_data(alice: Client, sql: Sql) -> None:
    logo_file(alice, "noise")
    add_code(alice, logo="noise.png")
    logo = bytes(sql("SELECT image AS logo FROM logos")[0]["logo"])
    chance = random.Random(7)  # noqa: S311
    for length in (10, 20, 30, 45, 60, 90, 130, 180, 230):
        for _ in range(2):
            text = "".join(chance.choices("abcdefghijklmnop:/.;é", k=length))
            size = chance.choice((128, 200, 300))
            picture = qr_image.image_spec(text, BLACK, WHITE, b"", form="png", max_pixels=size)
            assert decoded(pixels(render(picture, logo), "png")).text == text


def test_the_longest_wifi_data_fits_with_a_logo(alice: Client) -> None:
    path = add_code(alice, "wifi", data=MAX_WIFI, logo=logo_file(alice, "noise"))
    assert decoded(pixels(fetched(alice, f"{path}?size=200").data, "png")).text == payload("wifi", MAX_WIFI, "")
    answer = fetched(alice, f"{path}?size=64", Accept="application/json")
    assert answer.status_code == 400
    least = answer.get_json()["message"].removeprefix("size must be at least ").split()[0]
    assert fetched(alice, f"{path}?size={int(least) - 1}").status_code == 400
    assert decoded(pixels(fetched(alice, f"{path}?size={least}").data, "png")).text


@pytest.mark.parametrize("ssid", ["Café", "日本", "ABCD", "Привет", "12345", "🏠"])
def test_a_wifi_name_may_use_any_script(alice: Client, ssid: str) -> None:
    path = add_code(alice, "wifi", data={"ssid": ssid})
    assert decoded(pixels(fetched(alice, path).data, "png")).text == f"WIFI:T:nopass;S:{ssid};;"


def test_without_a_logo_the_error_correction_level_is_lower(alice: Client) -> None:
    plain = decoded(pixels(fetched(alice, add_code(alice)).data, "png"))
    assert plain.ec_level in "MQ"


@pytest.mark.parametrize("size", [64, 65, 199, 200, 1000, 2048])
def test_modules_are_whole_pixels_with_a_quiet_zone_of_four_modules(alice: Client, size: int) -> None:
    image = pixels(fetched(alice, f"{add_code(alice)}?size={size}").data, "png").convert("L")
    assert set(image.tobytes()) == {0, 255}
    code = image.point(lambda value: 255 - value)
    box = code.getbbox()
    assert box is not None
    left, top, right, bottom = box
    side = right - left
    # The corner's finder pattern is seven modules wide.
    run = next(x for x in range(side) if code.getpixel((left + x, top)) == 0)
    scale, rest = divmod(run, 7)
    assert (rest, side % scale, bottom - top) == (0, 0, side)
    assert left == top == image.width - right == image.height - bottom == 4 * scale
    assert scale == size // (side // scale + 8)


def test_sizes_with_the_same_module_width_share_an_image(alice: Client) -> None:
    path = add_code(alice)
    answers = [fetched(alice, f"{path}?size={size}") for size in range(1900, 2049, 7)]
    assert len({answer.headers["ETag"] for answer in answers}) == len({answer.data for answer in answers}) <= 6


@pytest.mark.parametrize("query", ["", "?format=png&size=400", "?size=", "?format="])
def test_a_png_of_400_pixels_is_the_default(alice: Client, query: str) -> None:
    answer = fetched(alice, add_code(alice) + query)
    assert answer.mimetype == "image/png"
    assert fits(pixels(answer.data, "png"), 400)


@pytest.mark.parametrize(
    "query",
    ["size=63", "size=2049", "size=0", "size=-64", "size=0100", "size=1e2", "size=%D9%A3%D9%A3%D9%A3", "size=100%0a",
     "size=" + "9" * 300, "size=%00", "format=gif", "format=PNG", "format=%00"],
)  # fmt: skip
def test_other_sizes_and_formats_are_rejected(alice: Client, query: str) -> None:
    assert fetched(alice, f"{add_code(alice)}?{query}").status_code == 400
    assert fetched(alice, f"{short_link(alice)}/qr?{query}").status_code == 400


def short_link(client: Client) -> str:
    answer = client.post("/api/url/add", {"url": "https://example.com/"})
    return str(answer.get_json()["shorturl"]).removeprefix(BASE_URL)


def test_the_image_of_a_short_link_has_a_format_and_a_size(alice: Client) -> None:
    path = f"{short_link(alice)}/qr"
    for query, form, size in (("", "png", 400), ("?size=200", "png", 200), ("/200", "png", 200),
                              ("?format=svg&size=1000", "svg", 1000), ("/1000?format=svg", "svg", 1000)):  # fmt: skip
        answer = fetched(alice, path + query)
        assert (answer.status_code, answer.mimetype) == (200, qr_image.FORMATS[form])
        image = pixels(answer.data, form)
        assert fits(image, size)
        assert decoded(image).text == f"{BASE_URL}{path.removesuffix('/qr')}?qr"


@pytest.mark.parametrize("code", ["x", "%00", "a%00b", "%ED%A0%80", "x" * 3000, "%D9%A3", "a'b", "..", "a%2Fb"])
def test_an_unknown_code_is_not_found(alice: Client, code: str) -> None:
    add_code(alice)
    answer = fetched(alice, f"/qr/{code}")
    assert answer.status_code == 404
    assert answer.mimetype == "text/html"


def test_the_id_in_the_url_is_case_sensitive(alice: Client, sql: Sql) -> None:
    path = add_code(alice)
    sql("UPDATE qrs SET code = 'abcDEF' WHERE id = %(id)s RETURNING 1", id=row_of(sql, path))
    assert [fetched(alice, f"/qr/{code}").status_code for code in ("abcDEF", "ABCDEF")] == [200, 404]


@pytest.mark.parametrize("form", [*qr_image.FORMATS])
def test_equal_input_gives_equal_bytes(alice: Client, form: str) -> None:
    path = add_code(alice, logo=logo_file(alice, "noise"))
    first = fetched(alice, f"{path}?format={form}")
    clear_cache()
    second = fetched(alice, f"{path}?format={form}")
    assert first.data == second.data


def test_an_image_opened_as_a_page_can_run_nothing(alice: Client) -> None:
    answer = fetched(alice, f"{add_code(alice, logo=logo_file(alice, 'noise'))}?format=svg")
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; img-src data:; sandbox"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    tags = {element.tag.partition("}")[2] for element in ElementTree.fromstring(answer.data).iter()}  # noqa: S314
    assert tags == {"svg", "path", "image"}
