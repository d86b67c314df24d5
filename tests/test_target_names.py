"""The names that targets of links are compared with, and the warnings about others."""

import pytest

from linkmgr.visits import audience, geoip, targets


@pytest.mark.parametrize(
    "agent",
    [
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Mobile/15E148 Safari",
        "Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Version/17.0 Mobile/15E148 Safari/604.1",
        "Mozilla/5.0 (Linux; Android 14; SM-G991B) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36",
        "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15",
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
        "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36",
        "Mozilla/5.0 (Linux; Android 13; KFTRWI) AppleWebKit/537.36 Silk/120.1 like Chrome/120.0 Safari/537.36",
    ],
)
def test_no_name_of_a_visitors_device_causes_a_warning(agent: str) -> None:
    names = list(targets.device_names(agent))
    assert names
    assert {name: audience.device_problem(name) for name in names} == dict.fromkeys(names)


def test_no_name_of_a_visitors_language_or_country_causes_a_warning() -> None:
    accepted = ["de", "de-AT", "pt-BR", "zh-Hans-CN", "zh-TW", "en-GB", "es-419", "gsw", "fil", "nb", "is", "*"]
    names = [name for code in accepted for name in targets.language_names(code)]
    assert {name: audience.language_problem(name) for name in names} == dict.fromkeys(names)
    for name in targets.country_names(geoip.Country("United Kingdom", "GB")):
        assert audience.country_problem(name) is None


@pytest.mark.parametrize(
    ("name", "matching", "others"),
    [
        # a region means that region
        ("pt-PT", ["pt-PT", "pt-PT, pt;q=0.9", "PT_pt"], ["pt-BR", "pt-BR,pt;q=0.9", "pt", "pt-AO"]),
        ("pt_br", ["pt-BR", "pt-BR,pt;q=0.9", "pt-Latn-BR", "pt"], ["pt-PT", "pt-PT, pt;q=0.9"]),
        ("Portuguese (Brazil)", ["pt-BR"], ["pt-PT"]),
        ("es-ES", ["es-ES", "es"], ["es-MX", "es-419", "es-419,es;q=0.9"]),
        ("de-DE", ["de-DE", "de", "de-DE-1996"], ["de-AT", "de-AT,de;q=0.9,en;q=0.8", "de-CH,de"]),
        ("fr-FR", ["fr", "fr-FR"], ["fr-CA", "fr-CH, fr;q=0.9"]),
        ("en-UK", ["en-GB"], ["en-US", "en"]),
        ("Spanish (Mexico)", ["es-MX"], ["es", "es-ES"]),
        ("Spanish (Atlantis)", [], ["es", "es-ES", "es-MX"]),
        # a code or a name alone means all of the language
        ("pt", ["pt", "pt-PT", "pt-BR", "pt-PT,pt;q=0.9"], ["es", "gl"]),
        ("eng", ["en-GB", "en"], ["de"]),
        ("no", ["no", "nb", "nn", "nb-NO", "nn-NO", "no-NO"], ["da", "sv", "nl"]),
        ("Norwegian", ["no", "nb-NO", "nn"], ["da"]),
        ("no-NO", ["nb-NO", "nn-NO", "nb"], ["da"]),
        ("nb", ["nb", "nb-NO"], ["nn", "nn-NO"]),
        ("Norwegian Nynorsk", ["nn"], ["nb", "no"]),
        ("iw", ["iw", "he", "he-IL"], ["yi"]),
        ("he", ["iw", "iw-IL"], ["yi"]),
        ("in", ["id", "in-ID"], ["ms", "hi"]),
        ("id", ["in"], ["ms"]),
        ("Hebrew", ["iw", "he-IL"], []),
        ("ji", ["yi"], []),
        ("mo", ["ro-MD", "ro"], []),
        ("Tagalog", ["fil-PH", "tl"], []),
        ("ga", ["ga-IE"], ["gaa"]),  # Irish, not the language Ga
        # scripts
        ("zh", ["zh", "zh-TW", "zh-Hans-CN", "cmn"], ["yue", "ja"]),
        ("zh-Hant", ["zh-TW", "zh-HK", "zh-Hant", "zh-Hant-HK"], ["zh-CN", "zh-Hans", "zh", "zh-SG"]),
        ("Chinese (Simplified)", ["zh-CN", "zh-Hans-SG"], ["zh-TW", "zh"]),
        ("zh-TW", ["zh-TW", "zh-Hant-TW", "zh-Hant"], ["zh-HK", "zh-Hant-HK", "zh"]),
        ("zh-Hans-CN", ["zh-CN", "zh-Hans"], ["zh-SG", "zh-TW"]),
        ("sr-Latn", ["sr-Latn-RS", "sr-Latn", "sh"], ["sr-RS", "sr"]),
        ("sr", ["sr-Latn-RS", "sr-RS", "sr"], ["hr"]),
        # no language
        ("*", ["*"], ["de", ""]),
        ("", [], ["de", "*", "", "x" * 99, "fr\x7f;;=,", "a-a-a,-,--,i-x,x-y"]),
    ],
)  # fmt: skip
def test_languages_are_compared_by_canonical_codes(name: str, matching: list[str], others: list[str]) -> None:
    for accepted in (*matching, *others):
        is_match = targets.language_tag(name) in {*targets.language_names(accepted)}
        assert is_match == (accepted in matching), accepted


def test_the_names_of_a_language_are_those_that_say_most_first() -> None:
    names = ["zh-hant-hk", "zh-hk", "zh-hant", "zh"]
    assert [*dict.fromkeys(targets.language_names("zh-Hant-HK, zh;q=0.9"))] == names
    assert [*targets.language_names("de, nn")][:3] == ["de", "de-de", "nn"]
