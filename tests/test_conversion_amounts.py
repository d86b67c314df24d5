"""Amounts of money as people write them on pages."""

from typing import Any

import pytest

from linkmgr.features.conversions import amounts


@pytest.mark.parametrize(
    ("sent", "value", "problem"),
    [("29,90", 29.9, ""), ("29.9", 29.9, ""), ("1.234,56 €", 1234.56, ""), ("$1,234.56", 1234.56, ""),
     ("CHF 1'234.50", 1234.5, ""), ("1 234,5", 1234.5, ""), ("1.234.567", 1234567, ""), ("0", 0, ""),
     ("1.234", None, "unreadable"), ("-5", None, "unreadable"), ("NaN", None, "unreadable"),
     ("1e18", None, "unreadable"), ("9" * 12, None, "too_large"), ("9" * 99, None, "unreadable"), ("", None, ""),
     ("1.299,00\xa0€", 1299, ""), ("R$ 29,90", 29.9, ""), ("٢٩", None, "unreadable"), (29.9 * 3, 89.7, ""),
     (1.234, 1.234, ""), (0, 0, ""), (-1, None, "unreadable"), (10**99, None, "too_large"), (1e18, None, "too_large"),
     (True, None, "unreadable"), ([1], None, "unreadable"), (None, None, "")],
)  # fmt: skip
def test_amounts_of_pages_are_read_as_people_write_them(sent: Any, value: float | None, problem: str) -> None:
    found, _, why = amounts.read(sent, "")
    assert (found and float(found), why) == (value, problem)


@pytest.mark.parametrize(
    ("text", "currency", "expected"),
    [("5 €", "EUR", ("5", "EUR", "")), ("$5", "cad", ("5", "CAD", "")), ("5", "ABC", ("5", "", "")),
     ("5 USD", "EUR", (None, "EUR", "unreadable")), ("5 €", "USD", (None, "USD", "unreadable"))],
)  # fmt: skip
def test_the_currency_of_an_amount_is_not_changed(text: str, currency: str, expected: tuple[Any, ...]) -> None:
    assert amounts.read(text, currency) == expected
