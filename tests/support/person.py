from selenium.webdriver.support.select import Select

from tests.support.browser import Browser


class Person:
    """Uses a browser and counts: a click, a text in a field, a choice and a key are one step each."""

    def __init__(self, browser: Browser) -> None:
        self.browser, self.steps = browser, 0

    def click(self, text: str, path: str = "") -> None:
        self.steps += 1
        self.browser.click(text)
        if path:
            self.browser.wait_for(path)

    def press(self, *keys: str) -> None:
        """Type a text into the field with the focus, or press a key."""
        self.steps += 1
        self.browser.press(*keys)

    def fill(self, selector: str, text: str) -> None:
        self.steps += 1
        self.browser.find(selector).send_keys(text)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option. The driver sends `change` only, where a person also causes `input`."""
        self.steps += 1
        found = self.browser.find(selector)
        Select(found).select_by_value(value)
        self.browser.driver.execute_script("arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", found)

    def set(self, selector: str, value: str) -> None:
        """Set a control that the driver cannot type into, such as a color or a time."""
        self.steps += 1
        self.browser.driver.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
            self.browser.find(selector),
            value,
        )

    def mark(self, selector: str) -> None:
        self.steps += 1
        found = self.browser.find(selector)
        self.browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
        found.click()
