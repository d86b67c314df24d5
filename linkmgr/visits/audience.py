"""Names in a link's targets that can match no visitor: countries, devices and languages that do not exist.

Each function takes a name in lower case. It returns the end of the sentence that warns of the name, or None if the
name can match. It accepts a name in doubt, because no list has all models of devices.
"""

import re

from linkmgr.fields import languages
from linkmgr.fields.countries import LOWER_NAMES, NAMES
from linkmgr.fields.unknown import did_you_mean
from linkmgr.visits.targets import DEVICE_WORDS, REGIONS

# Names of countries that no database uses.
_OTHER_NAMES = {
    "usa": "US", "u.s.": "US", "u.s.a.": "US", "america": "US", "england": "GB", "scotland": "GB", "wales": "GB",
    "northern ireland": "GB", "great britain": "GB", "britain": "GB", "holland": "NL", "deutschland": "DE",
    "österreich": "AT", "schweiz": "CH", "españa": "ES", "brasil": "BR", "uae": "AE", "korea": "KR",
}  # fmt: skip

# Codes that are taken for the one of a language.
_OTHER_CODES = {
    "cn": "zh", "cz": "cs", "dk": "da", "eng": "en", "fra": "fr", "fre": "fr", "ger": "de", "deu": "de", "gr": "el",
    "ita": "it", "jp": "ja", "jpn": "ja", "kr": "ko", "por": "pt", "rus": "ru", "spa": "es", "ua": "uk", "us": "en",
    "gb": "en", "br": "pt", "at": "de", "chi": "zh", "zho": "zh",
    "deutsch": "de", "français": "fr", "francais": "fr", "español": "es", "espanol": "es", "italiano": "it",
    "português": "pt", "portugues": "pt", "nederlands": "nl", "polski": "pl", "türkçe": "tr", "русский": "ru",
}  # fmt: skip

# Brands, families of models and systems, as ua-parser names them, and brands that it may learn.
_BRANDS = """
    3q acer advent ainol airis alcatel allview amazon android aoc apple appletv archos asus atv audiosonic axioo bird
    blackberry blackview blaupunkt blu bq brew captiva casio celkon chrome chromebook chromecast chromeos coolpad cube
    cubot debian dell denver docomo doogee doov elephone evercoss explay facebook fairphone fire firefox firetv fly
    freebsd fuchsia fujitsu galaxy garmin generic gentoo gigabyte gionee goclever google haier harmonyos hisense honor
    hp htc huawei hyundai iball inettv infinix inoi intenso intex ios ipad iphone ipod itel jiayu kaios karbonn kindle
    kobo kyocera lava leagoo lemon lenco lenovo lg lifebook linux lumia lyf mac macbook macintosh macos manta mediacom
    medion meizu meta micromax microsoft mito mobistel moto motorola msi multilaser nec netbsd netcast nexus nextbook
    nintendo nokia nothing nook nvidia oculus odys oneplus openbsd oppo os osx oukitel palm panasonic pantech philips
    pipo pixel playbook playstation poco polaroid positivo prestigio qmobile quest rca realme redmi roku samsung sega
    sharp siemens solaris sonim sony sonyericsson spice sprint surface symbian tcl tecno telstra tesla texet thl
    thomson tizen tmobile toshiba trekstor tvos ubuntu ulefone umidigi unihertz vernee vertu videocon viewsonic vivo
    vodafone walton watchos webos wiko wileyfox windows xbox xiaomi xolo xoro yarvik yota ziilabs zopo zte zuk
"""
_DEVICES = DEVICE_WORDS | set(_BRANDS.split())


def country_problem(name: str) -> str | None:
    if name.upper() in NAMES or name in LOWER_NAMES:
        return None
    hint = did_you_mean(name, LOWER_NAMES, _OTHER_NAMES.get(name))
    return f"is neither an English name nor an ISO code of a country, so it matches no visitor.{hint}"


def device_problem(name: str) -> str | None:
    words = re.split("[ -]", name)
    if any(character.isdigit() for character in name) or words[0] in _DEVICES:
        return None
    hint = did_you_mean(name, _DEVICES)
    return f"is not a model, maker, system or kind of device, so it matches no visitor.{hint}"


def _is_tag(name: str) -> bool:
    primary, *subtags = re.split("[-_]", name)
    if not re.fullmatch("[a-z]{2,3}", primary, re.ASCII) or primary in _OTHER_CODES:
        return False
    if len(primary) == len("en") and primary not in languages.NAMES:
        return False
    regions = [subtag for subtag in subtags if len(subtag) == len("us")]
    return all(re.fullmatch("[a-z0-9]{1,8}", subtag, re.ASCII) for subtag in subtags) and all(
        region.upper() in NAMES or region == primary for region in regions
    )


def language_problem(name: str) -> str | None:
    names = languages.LABELS.keys()
    language, _, region = name.removesuffix(")").partition(" (")
    if name == "*" or name in names or _is_tag(name) or (language in names and region in REGIONS.values()):
        return None
    hint = did_you_mean(name, names, _OTHER_CODES.get(name))
    return f"is not a language that browsers send. Use a code such as fr or pt-BR, or an English name.{hint}"
