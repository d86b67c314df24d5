"""A headless Chromium that fails the test if a page logs an error or violates its policy."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Tests open thousands of pages. Pages and processes that are kept for later are a third of the work.
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,BackForwardCache,SpareRendererForSitePerProcess",
    "--host-resolver-rules=MAP *.test 127.0.0.1",
)
PHONE = (360, 740)
DESKTOP = (1280, 900)
LOOKS = ((390, "light"), (1280, "dark"))


class Browser:
    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.looks = cycle(LOOKS)  # one for each page that a test checks, since all pages have the same components
        self.checked = 0  # pages

    def open(self, address: str) -> None:
        self.driver.get(address)

    def size(self, width: int, height: int) -> None:
        """Set the size of the page. A window cannot be as narrow as a phone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < DESKTOP[0]}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def scripts(self, *, run: bool) -> None:
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not run})

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, text: str) -> None:
        """Click the link, button or summary with this text."""
        which = f"//*[self::a or self::button or self::summary][normalize-space()='{text}']"
        self.driver.find_element(By.XPATH, which).click()

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def wait_for(self, path: str) -> None:
        """Wait until the page at this path is complete. The URL changes before the first element exists."""
        self.wait_until(lambda: path == self.path and self._is_whole())

    def wait_for_text(self, text: str) -> None:
        """Wait for a response at the same URL as the previous page."""
        self.wait_until(lambda: text in self.text and self._is_whole())

    def wait_for_focus(self, name: str) -> None:
        """Wait for `autofocus`, which takes effect after the page is complete; earlier keystrokes are lost."""
        self.wait_until(lambda: bool(self.run("return document.activeElement.id") == name))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds. An element that it reads may disappear meanwhile."""
        # The driver raises a different error for each way in which a page can disappear during a command.
        try:
            WebDriverWait(self.driver, 120, 0.05, [WebDriverException]).until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"{self.driver.current_url} shows:\n{self.text}") from None

    def _is_whole(self) -> bool:
        return bool(self.run("return document.readyState === 'complete'"))

    @property
    def path(self) -> str:
        return urlsplit(str(self.driver.current_url)).path

    @property
    def text(self) -> str:
        return self.find("body").text

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def complaints(self) -> list[str]:
        """Return the console messages, policy violations above all, without responses that have an error status."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log if entry["source"] != "network"]


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[webdriver.Chrome]:
    shell, driver = shutil.which("chromium-headless-shell"), shutil.which("chromedriver")
    if not (shell and driver):
        pytest.skip("No browser, so nothing was tested in it: apt-get install chromium-headless-shell chromium-driver")
    # The driver waits for a page, which this program opens only if its command line ends with one.
    program = folder / "chromium"
    program.write_text(f'#!/bin/sh\nexec {shell} "$@" about:blank\n')
    program.chmod(0o700)
    options = webdriver.ChromeOptions()
    options.binary_location = str(program)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, *flags, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    started.set_page_load_timeout(120)
    started.set_script_timeout(120)  # axe reads the longest page for many seconds on a busy machine
    yield started
    started.quit()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with running(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[Browser]:
    """A browser with a desktop window and no cookies."""
    found = Browser(chromium)
    found.size(*DESKTOP)
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})
    yield found
    found.scripts(run=True)
    complaints = found.complaints()
    found.open("about:blank")
    assert complaints == [], complaints
