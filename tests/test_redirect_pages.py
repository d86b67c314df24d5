"""Pages and images of a short link besides the redirect: password, expiry, preview, app and QR code."""

from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import pytest
import zxingcpp
from PIL import Image

from linkmgr.core.web import attempts, passwords
from tests.conftest import BASE_URL, Client
from tests.support.factories import Sql
from tests.support.shortlinks import ANDROID, BRANDED, FACEBOOK, TARGET, Make, Short
from tests.support.targets import FIREFOX, IPHONE

SECRET = "open sesame"


@pytest.fixture
def locked(short: Make) -> Short:
    return short(password_hash=passwords.hashed(SECRET))


def unlock(link: Short, password: str = SECRET, **request: Any) -> Any:
    return link.ask(method="POST", data={"password": password}, **request)


# --- the password


def test_the_password_form_reveals_nothing_about_the_link(locked: Short) -> None:
    for agent in (FIREFOX, FACEBOOK):
        page = locked.ask(agent=agent)
        assert page.status_code == 200
        assert page.headers["Cache-Control"] == "no-store"
        assert "This link is protected by a password" in page.text
        assert "example.com" not in page.text
    assert locked.ask(method="HEAD").status_code == 200
    assert locked.clicks == 0


def test_the_correct_password_redirects_and_counts_once(locked: Short) -> None:
    answer = unlock(locked)
    assert (answer.status_code, answer.headers["Location"]) == (303, TARGET)
    assert answer.headers["Cache-Control"] == "no-store"
    assert locked.clicks == 1
    assert "This link is protected by a password" in locked.ask().text, "each visit asks again"


@pytest.mark.parametrize("password", ["", "open", SECRET + " ", SECRET.upper(), SECRET + "\0", "x" * 5000, "\ud800"])
def test_a_wrong_password_is_reported(locked: Short, password: str) -> None:
    sent = urlencode({"password": password.encode("utf-8", "surrogatepass")})
    answer = locked.ask(method="POST", data=sent, Content_Type="application/x-www-form-urlencoded")
    assert answer.status_code == 401
    assert "This password is wrong. Try again." in answer.text
    assert locked.clicks == 0


def test_the_other_rules_apply_after_the_password(short: Make) -> None:
    link = short(
        password_hash=passwords.hashed(SECRET),
        devicetarget={"iphone": "https://example.com/i"},
        parameters=[["a", "1"]],
    )
    assert unlock(link, agent=IPHONE).headers["Location"] == "https://example.com/i?a=1"
    assert unlock(link).headers["Location"] == f"{TARGET}?a=1"


def test_an_ip_address_has_ten_password_attempts(locked: Short, short: Make, sql: Sql) -> None:
    other = short(password_hash=passwords.hashed(SECRET))
    answers = [unlock(locked, "guess").status_code for _ in range(attempts.ATTEMPTS + 1)]
    assert answers == [401] * attempts.ATTEMPTS + [429]
    refused = unlock(locked)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= attempts.WINDOW
    assert unlock(locked, address="192.0.2.1").status_code == 303
    assert unlock(other).status_code == 303
    browser = locked.app.test_client()
    assert browser.post("/login", data={"email": "x@example.com", "password": "y"}).status_code == 401
    sql("UPDATE rate_windows SET until = now() RETURNING 1")
    assert unlock(locked).status_code == 303


def test_it_works_on_a_branded_domain(locked: Short, alice: Client, sql: Sql) -> None:
    locked.brand()
    own = {"Host": BRANDED, "Origin": f"http://{BRANDED}"}
    assert unlock(locked, **own).headers["Location"] == TARGET
    assert unlock(locked, Host=BRANDED, Origin="null", Sec_Fetch_Site="same-origin").status_code == 303
    foreign_form = unlock(locked, Host=BRANDED, Sec_Fetch_Site="cross-site")
    assert foreign_form.status_code == 403
    assert locked.clicks == 2


def test_the_form_of_a_link_whose_password_was_removed_redirects_to_the_link(short: Make) -> None:
    link = short()
    answer = unlock(link)
    assert (answer.status_code, answer.headers["Location"]) == (303, link.path)
    assert link.clicks == 0


# --- expiry


def test_an_expired_link_shows_the_expiry_page_whatever_else_is_set(short: Make) -> None:
    link = short(expiry="2020-01-01 00:00:00+00", password_hash=passwords.hashed(SECRET), metatitle="Sale")
    for answer in (link.ask(), link.ask(agent=FACEBOOK), unlock(link)):
        assert answer.status_code == 410
        assert answer.headers["Cache-Control"] == "no-store"
        assert "This link has expired" in answer.text
        assert '<button class="button quiet" type="button">Go back</button>' in answer.text
        assert "example.com" not in answer.text
    assert link.clicks == 0


def test_a_link_that_expires_later_redirects(short: Make) -> None:
    assert short(expiry="2999-01-01 00:00:00+00").redirect_target() == TARGET


def test_an_expired_link_on_a_branded_domain_is_not_an_unknown_path(short: Make, alice: Client, sql: Sql) -> None:
    link = short(expiry="2020-01-01 00:00:00+00")
    link.brand()
    sql("UPDATE domains SET redirect404 = 'https://example.com/lost' RETURNING 1")
    assert link.ask(Host=BRANDED).status_code == 410


# --- the preview


def test_crawlers_of_social_networks_get_a_preview_and_visitors_the_target(short: Make) -> None:
    link = short(metatitle='Big "sale" <now>', metadescription="Half & half", metaimage="https://cdn.example.com/a.png")
    page = link.ask(agent=FACEBOOK)
    assert page.status_code == 200
    assert "Location" not in page.headers
    assert "form-action 'self'" in page.headers["Content-Security-Policy"]  # the preview has no form
    for tag in (
        '<meta property="og:title" content="Big &#34;sale&#34; &lt;now&gt;">',
        '<meta property="og:description" content="Half &amp; half">',
        '<meta property="og:image" content="https://cdn.example.com/a.png">',
        f'<meta property="og:url" content="{BASE_URL}/{link.alias}">',
        '<meta name="twitter:card" content="summary_large_image">',
        '<meta name="twitter:title" content="Big &#34;sale&#34; &lt;now&gt;">',
        '<meta name="twitter:description" content="Half &amp; half">',
        '<meta name="twitter:image" content="https://cdn.example.com/a.png">',
    ):
        assert tag in page.text
    assert link.clicks == 0
    assert link.redirect_target() == TARGET


@pytest.mark.parametrize(
    ("agent", "columns"),
    [
        ("Twitterbot/1.0", {"metatitle": "Sale"}),
        ("LinkedInBot/1.0 (compatible; Mozilla/5.0; +http://www.linkedin.com)", {"metadescription": "Sale"}),
        ("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", {"metaimage": "https://cdn.example.com/s.png"}),
        ("WhatsApp/2.23.20.0", {"metatitle": "Sale"}),
        ("TelegramBot (like TwitterBot)", {"metadescription": "Sale"}),
        ("Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)", {"metatitle": "Sale"}),
    ],
)
def test_one_member_is_enough_for_a_preview(short: Make, agent: str, columns: dict[str, str]) -> None:
    page = short(**columns).ask(agent=agent)
    assert page.status_code == 200
    assert "og:title" in page.text
    assert f'content="{next(iter(columns.values()))}"' in page.text


def test_search_engines_and_in_app_browsers_are_redirected(short: Make) -> None:
    link = short(metatitle="Sale")
    for agent in (
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        f"{IPHONE} [FBAN/FBIOS;FBAV/480.0]",
        f"{IPHONE} [LinkedInApp]",
        f"{IPHONE} [Pinterest/iOS]",
        f"{IPHONE} Instagram 300.0",
    ):
        assert link.redirect_target(agent=agent) == TARGET


def test_the_preview_of_a_branded_link_has_its_own_url(short: Make, alice: Client, sql: Sql) -> None:
    link = short(metadescription="Sale")
    link.brand()
    page = link.ask(agent=FACEBOOK, Host=BRANDED).text
    assert f'<meta property="og:url" content="https://{BRANDED}/{link.alias}">' in page
    assert f'<meta property="og:title" content="{BRANDED}/{link.alias}">' in page


# --- the app

STORES = {"apple": "https://apps.apple.com/app/id1", "google": "https://play.google.com/store/apps/details?id=a&x=1"}


@pytest.mark.parametrize(
    ("agent", "store"),
    [
        (IPHONE, STORES["apple"]),
        (IPHONE.replace("iPhone;", "iPad;"), STORES["apple"]),
        (ANDROID, STORES["google"]),
    ],
)
def test_a_phone_opens_its_app_or_is_redirected(short: Make, agent: str, store: str) -> None:
    link = short(deeplink=STORES, parameters=[["a", "1"]])
    page = link.ask(agent=agent)
    assert page.status_code == 200
    encoded = store.replace("&", "&amp;")
    assert f'<noscript><meta http-equiv="refresh" content="0; url={encoded}"></noscript>' in page.text
    assert f'href="{encoded}"' in page.text
    assert f'href="{TARGET}?a=1"' in page.text
    assert page.headers["Cache-Control"] == "no-store"
    assert link.clicks == 1


@pytest.mark.parametrize(
    ("agent", "deeplink"),
    [
        (FIREFOX, STORES),
        (ANDROID, {"apple": STORES["apple"], "auto": True}),
        (IPHONE, {"google": STORES["google"]}),
        (IPHONE, {"auto": True}),
        (IPHONE, {}),
        ("Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1) like iPhone", STORES),
    ],
)
def test_all_others_are_redirected(short: Make, agent: str, deeplink: dict[str, Any]) -> None:
    assert short(deeplink=deeplink).redirect_target(agent=agent) == TARGET


def test_a_splash_page_opens_the_app_and_a_frame_shows_the_target(short: Make) -> None:
    splash = short(deeplink=STORES, type="splash").ask(agent=IPHONE).text
    assert STORES["apple"] in splash
    frame = short(deeplink=STORES, type="frame").ask(agent=IPHONE).text
    assert TARGET in frame
    assert STORES["apple"] not in frame


# --- the QR code


def decoded(data: bytes) -> tuple[str, tuple[int, int]]:
    """Return the data of the code, and its size."""
    image = Image.open(BytesIO(data))
    [found] = zxingcpp.read_barcodes(image)
    return found.text, image.size


@pytest.mark.parametrize(("path", "size"), [("/qr", 400), ("/qr/", 400), ("/qr/64", 64), ("/qr/1000", 1000)])
def test_the_qr_code_of_a_link_contains_its_short_url(short: Make, path: str, size: int) -> None:
    link = short(password_hash=passwords.hashed(SECRET))
    answer = link.ask(path=path)
    assert (answer.status_code, answer.mimetype) == (200, "image/png")
    content, image = decoded(answer.data)
    assert content == f"{BASE_URL}/{link.alias}?qr"
    assert image[0] == image[1]
    assert size - 50 < image[0] <= size
    assert link.clicks == 0
    again = link.ask(path=path, If_None_Match=answer.headers["ETag"])
    assert (again.status_code, again.data) == (304, b"")


def test_on_a_branded_domain_it_contains_the_url_there(short: Make, alice: Client, sql: Sql) -> None:
    link = short()
    link.brand()
    assert decoded(link.ask(path="/qr/200", Host=BRANDED).data)[0] == f"https://{BRANDED}/{link.alias}?qr"
    assert link.ask(path="/qr/200").status_code == 404


def test_an_unknown_alias_has_no_qr_code(short: Make) -> None:
    browser = short().app.test_client()
    assert [browser.get(path).status_code for path in ("/nobodys/qr", "/nobodys/qr/200", "/no/qr")] == [404] * 3
