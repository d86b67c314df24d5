"""/api/bio"""

from linkmgr.openapi.schemas import ID, own_url, success, text
from linkmgr.openapi.usual import section
from linkmgr.resources.bio import BioPage

SECTION = section(
    BioPage,
    "Bio pages",
    example={"name": "Dana", "theme": "ocean", "links": [{"title": "Shop", "url": "https://example.com/shop"}]},
    change={"bio": "I write.", "theme": "dark"},
    codes=("plan_feature", "alias_taken"),
    responses={"add": success(id=ID, alias=text("dana"), shorturl=own_url("dana"))},
)
