"""/api/splash"""

from linkmgr.api import splash
from linkmgr.openapi.model import COUNTED, PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import (
    CREATED,
    ID,
    TIMESTAMP,
    changed,
    done,
    listing,
    number,
    reading,
    record,
    text,
    url_or_empty,
)

RESOURCE = Resource(
    name="Splash pages",
    description="A splash page is shown for some seconds before the redirect. Send its id as the `type` of a link.",
    members={
        "name": Member("Launch", "Its name in lists. Visitors do not see it."),
        "title": Member("One moment", "The heading of the page."),
        "message": Member("The sale starts soon.", "The text below the heading."),
        "link": Member("https://example.com/", "The page that the banner and the button below the text link to."),
        "counter": Member(5, "The seconds that the page is shown.", 5),
        "banner": Member("https://example.com/banner.png", "The URL of an image."),
    },
    records={
        "SplashPageListed": record(id=ID, name=text("Launch"), date=TIMESTAMP),
        "SplashPage": record(
            id=ID,
            name=text("Launch"),
            title=text("One moment"),
            message=text("The sale starts soon."),
            link=url_or_empty("https://example.com/"),
            counter=number(5, 1),
            banner=url_or_empty("https://example.com/banner.png"),
            date=TIMESTAMP,
        ),
    },
    operations=(
        Operation("GET", "/api/splash", "List splash pages", listing("splash", "SplashPageListed"), query=PAGING),
        Operation("GET", "/api/splash/{splash_id}", "Read a splash page", reading("SplashPage"), tagged=True),
        Operation(
            "POST",
            "/api/splash/add",
            "Add a splash page",
            CREATED,
            splash.NewSplash,
            {"name": "Launch", "title": "One moment", "counter": 5},
            codes=COUNTED,
        ),
        Operation(
            "PUT",
            "/api/splash/{splash_id}/update",
            "Change a splash page",
            changed("Splash page has been updated successfully.", "SplashPage"),
            splash.SplashChanges,
            {"message": "The sale starts soon."},
            tagged=True,
        ),
        Operation(
            "DELETE",
            "/api/splash/{splash_id}/delete",
            "Delete a splash page",
            done("Splash page has been deleted successfully."),
            description="Links with this splash page redirect without it from then on.",
        ),
    ),
)
