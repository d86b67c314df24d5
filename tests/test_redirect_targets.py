"""The target of a short link: by device, country and language, with its parameters."""

import pytest
from flask import Flask

from linkmgr.visits import targets
from linkmgr.visits.geoip import Country
from tests.conftest import Client
from tests.support.factories import Sql
from tests.support.geoip import CHILE, PERU
from tests.support.shortlinks import ANDROID, TARGET, Make, Short
from tests.support.targets import FIREFOX, IPHONE

IPAD = IPHONE.replace("iPhone;", "iPad;").replace("iPhone OS", "OS")
TABLET = ANDROID.replace("Pixel 8", "SM-X700").replace("Mobile ", "")
MAC = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.0 Safari/605.1.15"
)
LINUX = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
UBUNTU = LINUX.replace("X11;", "X11; Ubuntu;")
CHROMEBOOK = "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0"
LUMIA = (
    "Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15063"
)
BLACKBERRY = (
    "Mozilla/5.0 (BB10; Touch) AppleWebKit/537.10+ (KHTML, like Gecko) Version/10.0.9.2372 Mobile Safari/537.10+"
)


def links_to(*names: str) -> dict[str, str]:
    return {name: f"https://example.com/{number}" for number, name in enumerate(names)}


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        (IPHONE, ["iphone", "ios", "apple", "mobile", "phone", "smartphone", "ios 18"]),
        (IPAD, ["ipad", "ios", "apple", "mobile", "tablet"]),
        (ANDROID, ["android", "android phone", "android smartphone", "pixel 8", "google", "mobile", "android 14"]),
        (TABLET, ["android", "android tablet", "sm-x700", "tablet", "mobile"]),
        (FIREFOX, ["windows", "windows 10", "desktop", "computer"]),
        (MAC, ["mac", "macos", "mac os x", "os x", "macintosh", "apple", "desktop"]),
        (LINUX, ["linux", "linux desktop", "linux computer", "desktop"]),
        (UBUNTU, ["ubuntu", "ubuntu computer", "linux", "linux desktop", "desktop"]),
        (CHROMEBOOK, ["chrome os", "chromeos", "desktop"]),
        (LUMIA, ["windows phone", "mobile", "lumia 950"]),
        (BLACKBERRY, ["blackberry", "mobile", "blackberry 10"]),
    ],
)
def test_each_user_agent_form_of_a_device_is_recognized(agent: str, names: list[str]) -> None:
    assert set(names) <= set(targets.device_names(agent))


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        (IPHONE, ["ipad", "tablet", "android", "mac", "desktop", "mac os x"]),
        (IPAD, ["iphone", "phone", "smartphone", "android", "mac"]),
        (ANDROID, ["linux", "tablet", "iphone", "desktop"]),
        (TABLET, ["phone", "linux", "desktop"]),
        (FIREFOX, ["windows phone", "mobile", "linux", "mac"]),
        (MAC, ["ios", "mobile", "iphone", "linux"]),
        (LUMIA, ["android", "linux", "iphone", "windows", "desktop"]),
        ("curl/8.14", ["desktop", "mobile", "tablet"]),
        ("", ["desktop", "mobile", "tablet", "linux"]),
    ],
)
def test_similar_user_agents_are_not_that_device(agent: str, names: list[str]) -> None:
    assert not set(names) & set(targets.device_names(agent))


def test_a_device_has_its_own_target_and_the_most_specific_name_wins(short: Make) -> None:
    link = short(devicetarget=links_to("iphone", "ios", "mobile", "windows 10", "windows"))
    assert link.redirect_target(agent=IPHONE) == "https://example.com/0"
    assert link.redirect_target(agent=IPAD) == "https://example.com/1"
    assert link.redirect_target(agent=ANDROID) == "https://example.com/2"
    assert link.redirect_target(agent=FIREFOX) == "https://example.com/3"
    assert link.redirect_target(agent=LINUX) == TARGET
    assert link.redirect_target(agent="") == TARGET
    assert link.redirect_target(agent="x" * 5000) == TARGET


def test_a_country_has_its_own_target_by_name_or_code(short: Make) -> None:
    by_name, by_code = short(geotarget=links_to("peru", "chile")), short(geotarget=links_to("pe", "cl"))
    for link in (by_name, by_code):
        assert link.redirect_target(address=PERU) == "https://example.com/0"
        assert link.redirect_target(address=CHILE) == "https://example.com/1"
        assert link.redirect_target(address="192.0.2.1") == TARGET
        assert link.redirect_target(address="2001:db8::1") == TARGET


def test_without_a_geoip_file_all_visitors_get_the_default_target(app: Flask, sql: Sql, alice: Client) -> None:
    link = Short(app, sql, alice.id, geotarget=links_to("peru", "unknown", "none"))
    assert link.redirect_target(address=PERU) == TARGET


@pytest.mark.parametrize(
    ("country", "names"),
    [
        (Country("United Kingdom", "GB"), {"united kingdom", "gb", "uk"}),
        (Country("Czech Republic", "CZ"), {"czech republic", "cz", "czechia"}),
        (Country("Atlantis", "QQ"), {"atlantis", "qq"}),
        (Country(), set()),
    ],
)
def test_a_country_matches_all_of_its_names(country: Country, names: set[str]) -> None:
    assert set(targets.country_names(country)) == names
    assert list(targets.country_names(Country())) == []


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("fr", "fr"),
        ("fr-CH, fr;q=0.9, en;q=0.8", "fr"),
        ("en;q=0.5, fr;q=0.7", "fr"),
        ("en-US,en;q=0.9,de;q=0.8", None),
        ("en-US;q=0.5, en;q=0.45, de;q=0.449", None),
        ("en;q=0.5, de;q=0.45", "german"),
        ("FR", "fr"),
        ("pt-BR", "pt-br"),
        ("pt-PT", None),
        ("pt-PT, pt;q=0.9, fr;q=0.1", None),
        ("pt-PT, fr;q=0.9", "fr"),
        ("zh-Hant-TW", "chinese"),
        ("de-AT, fr", "german"),
        ("fr;q=0, de", "german"),
        ("en-US,en;q=0.5", None),
        ("*", None),
        ("", None),
        ("fr\x7f;;=,", None),
        (";q=x,,," * 500, None),
    ],
)
def test_a_language_has_its_own_target_by_the_visitors_preference(
    short: Make, accepted: str, expected: str | None
) -> None:
    languages = links_to("fr", "pt-br", "german", "chinese")
    link = short(languagetarget=languages)
    assert link.redirect_target(Accept_Language=accepted) == (languages[expected] if expected else TARGET)


def test_rules_and_targets_compare_canonical_codes(short: Make) -> None:
    rule = {"when": {"language": ["Norwegian", "iw"]}, "url": "https://example.com/rule"}
    link = short(rules=[rule], languagetarget=links_to("pt-pt", "in", "portuguese"))
    sent = ("nn-NO", "he-IL", "pt-PT", "id", "pt-BR", "fr")
    targets = [link.redirect_target(Accept_Language=accepted) for accepted in sent]
    assert [url.removeprefix("https://example.com/") for url in targets] == [
        "rule", "rule", "0", "1", "2", "page",
    ]  # fmt: skip


def test_a_language_may_be_written_with_an_underscore(short: Make) -> None:
    assert short(languagetarget=links_to("pt_br")).redirect_target(Accept_Language="pt-BR") == "https://example.com/0"


@pytest.mark.parametrize(
    ("target", "accepted"),
    [
        ("chinese (simplified)", "zh-CN"),
        ("chinese (simplified)", "zh-Hans-SG"),
        ("chinese (traditional)", "zh-TW"),
        ("chinese (traditional)", "zh-Hant"),
        ("portuguese (brazil)", "pt-BR"),
        ("portuguese (angola)", "pt-AO"),
        ("haitian creole", "ht-HT"),
        ("maori", "mi-NZ"),
        ("tagalog", "fil"),
        ("asturian", "ast"),
        ("norwegian bokmål", "nb-NO"),
        ("hebrew", "iw"),
        ("spanish (mexico)", "es-MX"),
        ("english (united kingdom)", "en-GB"),
        ("de_de", "de"),
        ("fr-fr", "fr"),
    ],
)
def test_a_language_may_be_written_with_its_region(short: Make, target: str, accepted: str) -> None:
    link = short(languagetarget=links_to(target))
    assert link.redirect_target(Accept_Language=accepted) == "https://example.com/0"
    assert (
        link.redirect_target(Accept_Language="zh")
        == link.redirect_target(Accept_Language="pt-PT, es-ES, en-US")
        == TARGET
    )


def test_the_visitors_own_region_has_precedence(short: Make) -> None:
    link = short(languagetarget=links_to("portuguese", "portuguese (brazil)", "chinese (traditional)", "zh"))
    assert link.redirect_target(Accept_Language="pt-BR") == "https://example.com/1"
    assert link.redirect_target(Accept_Language="pt-PT") == "https://example.com/0"
    assert link.redirect_target(Accept_Language="zh-HK") == "https://example.com/2"
    assert link.redirect_target(Accept_Language="zh-CN") == "https://example.com/3"


def test_the_order_is_device_country_language_default(short: Make) -> None:
    every = {
        "devicetarget": {"iphone": "https://example.com/device"},
        "geotarget": {"peru": "https://example.com/country"},
        "languagetarget": {"fr": "https://example.com/language"},
    }
    link = short(**every)
    assert link.redirect_target(agent=IPHONE, address=PERU, Accept_Language="fr") == "https://example.com/device"
    assert link.redirect_target(agent=FIREFOX, address=PERU, Accept_Language="fr") == "https://example.com/country"
    assert link.redirect_target(agent=FIREFOX, address=CHILE, Accept_Language="fr") == "https://example.com/language"
    assert link.redirect_target(agent=FIREFOX, address=CHILE, Accept_Language="de") == TARGET
    assert link.clicks == 4


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/", "https://example.com/?a=1&b=2"),
        ("https://example.com", "https://example.com?a=1&b=2"),
        ("https://example.com/?x=%20y", "https://example.com/?x=%20y&a=1&b=2"),
        ("https://example.com/?", "https://example.com/?a=1&b=2"),
        ("https://example.com/?x&", "https://example.com/?x&a=1&b=2"),
        ("https://example.com/p#top", "https://example.com/p?a=1&b=2#top"),
        ("https://example.com/p?x=1#a?b#c", "https://example.com/p?x=1&a=1&b=2#a?b#c"),
        ("https://example.com/?a=0", "https://example.com/?a=1&b=2"),
        ("https://example.com/?b&x=%20y&a=0&%61=9&A=3#a=4", "https://example.com/?x=%20y&A=3&a=1&b=2#a=4"),
        ("https://example.com/?x=1&x=2&&ab=3", "https://example.com/?x=1&x=2&ab=3&a=1&b=2"),
    ],
)
def test_parameters_replace_equal_names_of_the_query_and_stand_before_the_fragment(url: str, expected: str) -> None:
    assert targets.with_parameters(url, [["a", "1"], ["b", "2"]]) == expected


def test_parameters_of_one_name_are_all_added(short: Make) -> None:
    link = short(url=f"{TARGET}?a=0&x", parameters=[["a", "1"], ["a", "2"]], forwardquery=True)
    assert link.redirect_target() == f"{TARGET}?x&a=1&a=2"
    assert link.redirect_target(path="?a=3") == f"{TARGET}?x&a=3"


def test_parameters_are_encoded_and_added_to_every_target(short: Make) -> None:
    parameters = [["utm source", "a&b=c#d"], ["näme", "x\r\nSet-Cookie: y"], ["utm", ""]]
    link = short(parameters=parameters, devicetarget={"iphone": "https://example.com/i?k=v"})
    query = "utm%20source=a%26b%3Dc%23d&n%C3%A4me=x%0D%0ASet-Cookie%3A%20y&utm="
    assert link.redirect_target() == f"{TARGET}?{query}"
    answer = link.ask(agent=IPHONE)
    assert answer.headers["Location"] == f"https://example.com/i?k=v&{query}"
    assert answer.headers["Location"].isascii()
    assert "Set-Cookie" not in answer.headers
