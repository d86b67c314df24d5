"""Downloads of the user's links and of the whole account."""

from flask import Response, g

from linkmgr.api.export import URLS
from linkmgr.pages.console.frame import bp
from linkmgr.repository import export, export_account
from linkmgr.web import export as web_export


@bp.get("/export/links.csv")
def export_links() -> Response:
    export.require_feature(g.user_id)
    batches = export.each(URLS.batch, g.user_id)
    return web_export.download(web_export.encode("csv", URLS.columns, batches), "text/csv", "links.csv")


@bp.get("/export/account.zip")
def export_everything() -> Response:
    export.require_feature(g.user_id)
    chunks = web_export.zipped(export_account.files(g.user_id))
    return web_export.download(chunks, "application/zip", "linkmgr-account.zip")
