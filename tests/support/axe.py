"""axe-core, which finds violations of WCAG in a page. The package brings the script, and a driver that is not used."""

from importlib.resources import files

from tests.support.browser import Browser

_SCRIPT = files("axe_playwright_python").joinpath("axe.min.js").read_text()
# The levels A and AA of WCAG 2.2. Two rules are disabled by default. Details are of violations only, which halves the
# time that axe takes.
_RUN = """
    const options = {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", ...arguments[0]],
                     rules: {"target-size": {enabled: true}, "label-content-name-mismatch": {enabled: true}},
                     iframes: false, resultTypes: ["violations"]};
    const report = ({violations, passes, incomplete, inapplicable}) => ({
        violations, rules: [violations, passes, incomplete, inapplicable].flat().map((rule) => rule.id)});
    const context = {include: ["html"], exclude: arguments[1] ? [arguments[1]] : []}, done = arguments[2];
    axe.run(context, options).then(report).then(done, (error) => done({failed: String(error)}));
"""


def violations(browser: Browser, *more: str, left_out: str = "") -> list[str]:
    """Return a sentence for each element of the page that violates a rule, but for the one that is `left_out`. `more`
    are further tags of rules."""
    if not browser.run("return Boolean(window.axe)"):
        browser.run(_SCRIPT)
    result = browser.driver.execute_async_script(_RUN, list(more), left_out)
    assert "failed" not in result, result
    assert {"target-size", "label-content-name-mismatch"} <= set(result["rules"])
    return [
        f"{rule['id']}: {rule['help']}: {node['target']} {node['html'][:200]} {node['failureSummary']}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]
