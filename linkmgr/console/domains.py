import re

from flask import flash, g, redirect, request, url_for
from werkzeug.wrappers import Response

from linkmgr.console import queries
from linkmgr.console.frame import bp
from linkmgr.console.groups import CountedForm
from linkmgr.core.database.paging import Page
from linkmgr.core.database.statements import Row
from linkmgr.core.feature import has_feature
from linkmgr.core.fields.aliases import PATTERN, is_wide
from linkmgr.core.fields.bodies import load
from linkmgr.core.outbound import domain_check
from linkmgr.core.settings import settings
from linkmgr.features.missing_paths import repository as missing_paths
from linkmgr.repository import account as accounts
from linkmgr.schemas.account import Account
from linkmgr.schemas.domains import DOMAINS, check_domain

_MISSING = 20  # paths on the page of a domain


def missed_paths(owner: int, domain_id: int, *, can_be_wide: bool) -> Page:
    """Return the paths that visitors did not find most often, with the alias that each could be."""
    paths = missing_paths.index(owner, domain_id, limit=_MISSING, number=1)
    for missed in paths.rows:
        alias = missed["path"][1:]
        is_alias = re.fullmatch(PATTERN, alias) or (can_be_wide and is_wide(alias))
        missed["alias"] = alias if is_alias else None
    return paths


class DomainForm(CountedForm):
    list_template = "console/domains.html"
    template = "console/domain_form.html"
    noun = "domain"
    used = "link"
    typed = "host"
    can_duplicate = False
    example = (
        "A branded domain replaces the host of this service in your short URLs. For example, "
        "go.example.com/summer. Its pages show your name, your logo and your color."
    )
    consequence = (
        "Visitors of {host} will see a page that says it is not configured, and the QR codes with "
        "its URLs no longer work. A domain that links use cannot be deleted."
    )

    def read(self, user_id: int, row_id: int) -> Row:
        row = super().read(user_id, row_id)
        states = queries.uses(user_id, [row_id], path="domain")
        row |= states[0] | {"host": row["domain"].partition("://")[2]}
        if has_feature("missing_paths"):
            row["missing"] = missed_paths(user_id, row_id, can_be_wide=row["widealiases"])
        return row

    def selection(self, row: Row) -> Row:
        return {"domain": row["domain"].partition("://")[2]}

    def choices(self) -> Row:
        return {
            "dns_record": domain_check.dns_record,
            "is_checked": settings().domain_check != "off",
        }


FORM = DomainForm(DOMAINS)
FORM.add_urls("/domains", "/domains/new", "/domains/<id:row_id>/edit", "/domains/<id:row_id>/delete")


@bp.post("/domains/default")
def domain_default() -> Response:
    """Store the domain of new links, or "" for that of this service."""
    sent = load(Account.updates(), {"domain": request.form.get("domain", "")})
    domain = accounts.update(g.user_id, domain=sent["domain"])["domain"] or settings().base_url
    flash(f"Forms for new links now begin with {domain.partition('://')[2]}.", "success")
    return redirect(FORM.url(""), code=303)


@bp.post("/domains/<id:row_id>/check")
def domain_check_now(row_id: int) -> Response:
    problem = check_domain(g.user_id, row_id)
    if problem is None:
        flash("This installation does not check domains.", "info")
    else:
        flash(problem or "The domain points to this service.", "error" if problem else "success")
    return redirect(url_for("console.domains_edit", row_id=row_id), code=303)
