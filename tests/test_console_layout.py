"""The layout of the console on paper."""

import pytest

from tests import factories
from tests.browser import Browser
from tests.conftest import Client
from tests.console_pages import signed_in_browser  # noqa: F401 - a fixture
from tests.factories import Sql

pytestmark = pytest.mark.browser


def test_paper_shows_all_figures_of_a_chart(signed_in: Browser, base: str, alice: Client, sql: Sql) -> None:
    browser = signed_in
    link = factories.link(sql, alice.id)
    factories.visit(sql, link)
    browser.open(f"{base}/console/links/{link}")
    browser.click("Show the figures")
    cut = "const box = document.querySelector('.chart .figures'); return box.scrollHeight > box.clientHeight"
    assert browser.run(cut) is True
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run(cut) is False
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
