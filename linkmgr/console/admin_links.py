"""Links of all users, for administrators."""

from flask import render_template

from linkmgr.console.admin_access import bp
from linkmgr.console.forms import PER_PAGE
from linkmgr.core.fields.query import page_number, query_id, query_text
from linkmgr.core.fields.urls import MAX_URL
from linkmgr.repository import account as accounts
from linkmgr.repository import link_lists

_MOST = 50  # links with a text


@bp.get("/users/links")
def links() -> str:
    """Show the links with a text, or those of a user."""
    q, user_id = query_text("q", MAX_URL), int(query_id("user") or 0)
    owner = accounts.overview(user_id) | {"id": user_id} if user_id else None
    page = link_lists.index(user_id, limit=PER_PAGE, number=page_number(), after=None) if owner else None
    return render_template(
        "administration/links.html",
        q=q or "",
        least=link_lists.LEAST_SEARCHED,
        most=_MOST,
        owner=owner,
        page=page,
        rows=page.rows if page else link_lists.find(q.strip(), _MOST) if q else [],
    )
