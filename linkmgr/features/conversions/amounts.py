"""Amounts of money: exact ones of keys, and those that pages have as people write them."""

import re
from decimal import Decimal
from typing import Any, ClassVar

from marshmallow import ValidationError, fields

from linkmgr.core.fields.base import Matching
from linkmgr.core.fields.member import JsonSchema
from linkmgr.features.conversions.repository import MAX_VALUE

_CODES = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF
    CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD
    HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD
    LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK
    PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS
    TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_CODES.split())  # of ISO 4217
_SIGNS = {
    "us$": "USD",
    "r$": "BRL",
    "€": "EUR",
    "£": "GBP",
    "$": "USD",
    "¥": "JPY",
    "₹": "INR",
    "₩": "KRW",
    "₺": "TRY",
    "zł": "PLN",
    "kč": "CZK",
}
_SHARED = ("£", "$", "¥")  # by several currencies
_EXACT = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,3})?", re.ASCII)
_FORMS = (  # of the whole part and the decimals
    r"(\d{1,15})(?:[.,](\d{1,2}))?",
    r"(0)[.,](\d{3})",
    r"(\d{1,3}(?:\.\d{3})+),(\d{1,3})",
    r"(\d{1,3}(?:,\d{3})+)\.(\d{1,3})",
    r"(\d{1,3}(?:\.\d{3}){2,4})()",
    r"(\d{1,3}(?:,\d{3}){2,4})()",
)
_MAX_TEXT = 40


class Amount(fields.Field[str]):
    """A decimal number, as text or not. It is loaded as text, because floats are not decimal."""

    json: ClassVar[JsonSchema] = {
        "type": "number",
        "minimum": 0,
        "maximum": MAX_VALUE,
        "description": "With at most three decimals, also as text.",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        # Programs add up floats: 29.9 * 3 is 89.69999999999999.
        number = format(Decimal(str(round(value, 6))), "f") if _is_number(value) else ""
        text = value if isinstance(value, str) else number
        text = text.rstrip("0").removesuffix(".") if "." in text else text
        if not _EXACT.fullmatch(text) or Decimal(text) > MAX_VALUE:
            raise ValidationError(f"must be a number from 0 to {MAX_VALUE} with at most three decimals")
        return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Currency(Matching):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__("[A-Za-z]{3}", "a currency of ISO 4217 such as EUR", **kwargs)

    def clean(self, text: str) -> str:
        code = super().clean(text).upper()
        if code not in CURRENCIES:
            raise ValidationError("must be a currency of ISO 4217 such as EUR")
        return code


def read(amount: Any, currency: str) -> tuple[str | None, str, str]:
    """Return the value of a number, or of an amount as people write it, its currency, and why there
    is no value: `unreadable`, `too_large`, or "". `29,90 €`, `1.234,56`, `$1,234.56` and
    `CHF 1'234.50` are read. The text `1.234` is not: it is a thousand in one country and one in
    another. Neither is `5 USD` with another currency."""
    code = currency.upper() if currency.upper() in CURRENCIES else ""
    if amount is None or amount == "":
        return None, code, ""
    if _is_number(amount):
        value = f"{min(amount, 2 * MAX_VALUE):.3f}" if amount >= 0 else None
    else:
        value, code = _written(amount, code) if isinstance(amount, str) else (None, code)
    if value is None:
        return None, code, "unreadable"
    return (value, code, "") if Decimal(value) <= MAX_VALUE else (None, code, "too_large")


def _written(text: str, code: str) -> tuple[str | None, str]:
    """Return the value of an amount as people write it, or None, and its currency."""
    number = re.sub(r"[\s'\u2019]", "", text[: _MAX_TEXT + 1].lower())
    for name, meaning in [*_SIGNS.items(), *((name.lower(), name) for name in CURRENCIES)]:
        if number.startswith(name) or number.endswith(name):
            number = number.removeprefix(name).removesuffix(name)
            if code not in ("", meaning) and name not in _SHARED:
                return None, code
            code = code or meaning
            break
    return (_plain(number) if len(text) <= _MAX_TEXT else None), code


def _plain(number: str) -> str | None:
    """Return a number with a point before its decimals and no other separators, or None."""
    match = next(filter(None, (re.fullmatch(form, number, re.ASCII) for form in _FORMS)), None)
    if match is None:
        return None
    whole, decimals = re.sub("[.,]", "", match[1]), match[2]
    return f"{whole}.{decimals}" if decimals else whole
