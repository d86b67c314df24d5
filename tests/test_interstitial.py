"""Interstitial pages without scripts: splash page, frame, overlay and pixels."""

import html
import re

import psycopg2
import pytest

from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.interstitials import TARGET, Show, hrefs, overlay, policy, refresh, splash

# --- splash pages


def test_a_splash_page_shows_the_owners_text_and_links_to_the_target(show: Show, alice: Client, sql: Sql) -> None:
    given = {
        "title": "Sale <today>",
        "message": "Half price\nuntil noon",
        "link": "https://shop.example.com/more?a=1&b=2",
        "counter": 7,
        "banner": "https://cdn.example.com/banner.png?w=1",
    }
    answer = show("splash", splash_id=splash(sql, alice.id, **given))
    assert answer.status_code == 200
    assert "Sale &lt;today&gt;</h1>" in answer.text
    assert "Half price\nuntil noon" in answer.text
    assert 'src="https://cdn.example.com/banner.png?w=1"' in answer.text
    assert refresh(answer) == (7, TARGET)
    assert TARGET in hrefs(answer)
    assert given["link"] in hrefs(answer)
    assert policy(answer)["img-src"] == ["'self'", "data:", "https://cdn.example.com"]


def test_a_link_may_show_a_plain_splash_page(show: Show) -> None:
    answer = show("splash", metatitle="Spring sale")
    assert "Spring sale</h1>" in answer.text
    assert "shop.example.com" in answer.text
    assert refresh(answer) == (5, TARGET)


# --- frames


def test_a_frame_has_a_link_to_its_target_next_to_it(show: Show) -> None:
    answer = show("frame")
    assert f'<iframe class="frame" src="{html.escape(TARGET).replace("&#x27;", "&#39;")}"' in answer.text
    assert TARGET in hrefs(answer)
    assert "Open shop.example.com" in answer.text
    assert policy(answer)["frame-src"] == ["http:", "https:"]
    assert policy(answer)["frame-ancestors"] == ["'none'"]


@pytest.mark.parametrize("type_", ["frame", "overlay"])
def test_a_framed_site_navigates_the_page_only_after_a_user_gesture(
    show: Show, alice: Client, sql: Sql, type_: str
) -> None:
    answer = show(type_, overlay_id=overlay(sql, alice.id, "message"))
    [sandbox] = re.findall('<iframe [^>]*sandbox="(.*?)"', answer.text, re.DOTALL)
    assert sandbox.split() == [
        "allow-downloads",
        "allow-forms",
        "allow-modals",
        "allow-popups",
        "allow-popups-to-escape-sandbox",
        "allow-presentation",
        "allow-same-origin",
        "allow-scripts",
        "allow-top-navigation-by-user-activation",
    ]


def test_a_target_that_browsers_refuse_to_frame_is_not_framed(show: Show, alice: Client, sql: Sql) -> None:
    secure, plain = "https://localhost", "http://shop.example.com/"
    answer = show("frame", plain, base_url=secure)
    assert (answer.status_code, answer.headers["Location"]) == (302, plain)
    laid = show("overlay", plain, base_url=secure, overlay_id=overlay(sql, alice.id, "message"))
    assert "<iframe" not in laid.text
    assert "What do you think?" in laid.text
    assert hrefs(laid).count(plain) == 2
    assert "<iframe" in show("frame", TARGET, base_url=secure).text


# --- common to all pages


@pytest.mark.parametrize("type_", ["splash", "frame"])
def test_pages_are_not_cached_and_allow_no_external_sources_by_default(show: Show, type_: str) -> None:
    answer = show(type_, title="</title><script>")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "strict-origin-when-cross-origin"
    assert "<title></title><script>" not in answer.text
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert policy(answer)["default-src"] == policy(answer)["base-uri"] == ["'none'"]


@pytest.mark.parametrize("target", ["javascript:alert(1)", "data:text/html,x", "//example.com/", "ftp://example.com/"])
@pytest.mark.parametrize("type_", ["splash", "frame"])
def test_only_http_and_https_targets_are_linked_to(show: Show, type_: str, target: str) -> None:
    answer = show(type_, target)
    assert answer.status_code == 404
    assert target not in answer.text


@pytest.mark.parametrize(
    ("address", "source"),
    [(f"https://cdn.example.com{rest}", "https://cdn.example.com") for rest in ("", "?w=1", "#top", "/a.png")]
    + [(f"https://cdn.example.com:8443{rest}", "https://cdn.example.com:8443") for rest in ("", "/a.png")]
    + [(f"https://{host}/a.png", "https:") for host in ("[2001:db8::1]", "my_shop.example.com", "bücher.example")]
    + [(f"https://{host}/a.png", "https:") for host in ("jo@example.com", "example.com:80x", "a;b")],
)
def test_an_image_allows_its_own_origin_or_the_scheme_if_a_policy_cannot_express_it(
    show: Show, alice: Client, sql: Sql, address: str, source: str
) -> None:
    answer = show("splash", splash_id=splash(sql, alice.id, banner=address))
    assert f'src="{address}"' in answer.text
    assert policy(answer)["img-src"] == ["'self'", "data:", source]


# --- overlays


OVERLAYS: list[tuple[str, dict[str, str], list[str]]] = [
    ("message", {"link": "https://example.com/a", "label": "Read on"}, ["What do you think?", "Read on</a>"]),
    ("contact", {}, ['name="name"', 'name="email"', "<textarea", "Send message</button>"]),
    ("newsletter", {"label": "Join"}, ['name="email"', "Join</button>"]),
    ("poll", {"message": "Tea?\nBlack\nGreen\n\nBlack"}, ["Tea?", 'value="Black"', 'value="Green"', "Vote<"]),
    ("poll", {"message": "Tea?\nOf course"}, ["Tea?", 'value="Of course"']),
    ("poll", {"message": "Tea?\r\nA\u2028B\rC\r\n"}, ["Tea?", 'value="A\u2028B"', 'value="C"']),
    ("poll", {"message": "Tea?\n" + "A\n" * 12 + "B"}, ["Tea?", 'value="A"', 'value="B"']),
    ("poll", {"message": "Tea?"}, ["Tea?", 'value="Yes"', 'value="No"']),
    ("coupon", {"label": "SAVE10", "link": "https://example.com/b"}, ["SAVE10", "https://example.com/b"]),
    (
        "image",
        {"message": "https://cdn.example.com/a.png\nOur house", "label": "A house"},
        ['src="https://cdn.example.com/a.png"', 'alt="A house"', "Our house"],
    ),
    ("image", {"message": "javascript:alert(1)"}, ['id="message" dir="auto">javascript:alert(1)']),
]


@pytest.mark.parametrize("given", OVERLAYS)
def test_an_overlay_shows_the_content_of_its_type(
    show: Show, alice: Client, sql: Sql, given: tuple[str, dict[str, str], list[str]]
) -> None:
    type_, members, texts = given
    answer = show("overlay", overlay_id=overlay(sql, alice.id, type_, **members))
    for text in texts:
        assert text in answer.text
    assert "<details" in answer.text
    assert TARGET in hrefs(answer)
    assert ("<form" in answer.text) == (type_ in ("contact", "newsletter", "poll"))


@pytest.mark.parametrize("type_", ["message", "image"])
def test_the_name_of_an_overlay_is_not_shown(show: Show, alice: Client, sql: Sql, type_: str) -> None:
    members = {"name": "For Globex only", "message": "https://cdn.example.com/a.png", "label": ""}
    if type_ == "image":
        members["link"] = "https://example.com/"
    answer = show("overlay", overlay_id=overlay(sql, alice.id, type_, **members))
    assert "Globex" not in answer.text
    assert '<aside aria-label="Message">' in answer.text
    assert ('alt="Learn more"' in answer.text) is (type_ == "image"), "a link needs a name"


def test_colors_are_the_only_input_in_the_style(
    show: Show, alice: Client, sql: Sql, raw: psycopg2.extensions.connection
) -> None:
    def style(color: str) -> str:
        overlay_id = overlay(sql, alice.id, "message")
        with raw.cursor() as cursor:  # without the triggers that check colors
            cursor.execute("SET session_replication_role = replica; UPDATE overlays SET color = %s", (color,))
        answer = show("overlay", overlay_id=overlay_id)
        [(nonce, found)] = re.findall(r'<style nonce="(.+?)">(.*?)</style>', answer.text)
        assert f"'nonce-{nonce}'" in policy(answer)["style-src"]
        return str(found)

    assert style("#0aF") == ".overlay { --ink: #0aF; --paper: #1d4ed8; }"
    assert style("red} body { display: none") == ".overlay { --ink: #ffffff; --paper: #1d4ed8; }"
