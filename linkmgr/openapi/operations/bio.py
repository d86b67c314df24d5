"""/api/bio"""

from linkmgr.api import bio
from linkmgr.openapi.model import PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import (
    ID,
    TIMESTAMP,
    JsonSchema,
    array_of,
    changed,
    choice,
    done,
    listing,
    own_url,
    reading,
    record,
    success,
    text,
    url,
)

_BIO: dict[str, JsonSchema] = {
    "id": ID,
    "name": text("Dana"),
    "alias": text("dana"),
    "shorturl": own_url("dana"),
    "date": TIMESTAMP,
}
_CODES = ("plan_feature", "alias_taken")

RESOURCE = Resource(
    name="Bio pages",
    description="""\
A bio page is always on the host of this service. Plans do not limit their number; a custom alias needs the feature
`alias`.""",
    members={
        "name": Member("Dana", "The heading of the page."),
        "alias": Member(
            "dana",
            "The last part of the page's URL. It is case-sensitive, unique among links and bio pages, and not a "
            "reserved word such as `login`. Without it, the service generates 8 characters.",
        ),
        "bio": Member("I write.", "The text below the heading."),
        "theme": Member("ocean", "The colors. `auto` is light or dark, as the visitor prefers.", "light"),
        "links": Member(
            [{"title": "Shop", "url": "https://example.com/shop"}],
            "The links of the page, in this order. An update replaces all of them.",
        ),
    },
    nested={
        bio.BioLink: {
            "title": Member("Shop"),
            "url": Member("https://example.com/shop", "It may also be one of your short links."),
        }
    },
    records={
        "BioPageListed": record(**_BIO),
        "BioPage": record(
            **_BIO,
            bio=text("I write."),
            theme=choice(*bio.THEMES),
            links=array_of(record(title=text("Shop"), url=url("https://example.com/shop"))),
        ),
    },
    operations=(
        Operation("GET", "/api/bio", "List bio pages", listing("bios", "BioPageListed"), query=PAGING),
        Operation("GET", "/api/bio/{bio_id}", "Read a bio page", reading("BioPage"), tagged=True),
        Operation(
            "POST",
            "/api/bio/add",
            "Add a bio page",
            success(id=ID, alias=text("dana"), shorturl=own_url("dana")),
            bio.NewBio,
            {"name": "Dana", "theme": "ocean", "links": [{"title": "Shop", "url": "https://example.com/shop"}]},
            codes=_CODES,
        ),
        Operation(
            "PUT",
            "/api/bio/{bio_id}/update",
            "Change a bio page",
            changed("Bio page has been updated successfully.", "BioPage"),
            bio.BioChanges,
            {"bio": "I write.", "theme": "dark"},
            codes=_CODES,
            tagged=True,
        ),
        Operation(
            "DELETE", "/api/bio/{bio_id}/delete", "Delete a bio page", done("Bio page has been deleted successfully.")
        ),
    ),
)
