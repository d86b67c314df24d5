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
    names = [name for code in accepted for name in targets.language_names(code) if name not in {"*-*", "*_*"}]
    assert {name: audience.language_problem(name) for name in names} == dict.fromkeys(names)
    for name in targets.country_names(geoip.Country("United Kingdom", "GB")):
        assert audience.country_problem(name) is None
