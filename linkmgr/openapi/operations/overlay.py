"""/api/overlay"""

from linkmgr.api import overlay
from linkmgr.fields.overlays import MAX_CHOICES
from linkmgr.openapi.model import COUNTED, PAGING, Member, Operation, Resource
from linkmgr.openapi.schemas import (
    COLOR,
    CREATED,
    ID,
    TIMESTAMP,
    changed,
    choice,
    done,
    listing,
    map_of,
    reading,
    record,
    text,
    url_or_empty,
)
from linkmgr.repository.overlay_answers import MAX_ANSWERS

RESOURCE = Resource(
    name="CTA overlays",
    description=f"""\
An overlay is shown above the target of a link. Send its id in the `type` of a link: `overlay-17`. The meaning of
`message` depends on the type:

- `contact`, `newsletter`, `message`: the text above the form or the button.
- `poll`: the first line is the question, and each further line is a choice, at most {MAX_CHOICES}. Without choices
  they are Yes and No.
- `image`: the first line is the URL of the image, and the rest is its caption.
- `coupon`: the text above the code, which is the `label`.

If an update has only the type or only the message, it must fit the stored value of the other. To change the type of an
overlay whose message the new type cannot show, send both.

Visitors answer a `contact`, `newsletter` or `poll` overlay with a form, which the page sends to `/o/answer`. A form is
valid for a day. An IP address can send 10 answers in 10 minutes; beyond that, the response is a 429. An overlay keeps
at most {MAX_ANSWERS:,} answers; once it has them, the response to further ones is a 403.""",
    members={
        "type": Member("message", "The type of the overlay."),
        "name": Member("Sale", "Its name in lists. Visitors do not see it."),
        "message": Member("Everything must go.", "The text. The description above explains it for each type."),
        "link": Member("https://example.com/sale", "The page that the button links to."),
        "label": Member(
            "Have a look", "The text of the button, the code of a `coupon`, or the alternative text of an `image`."
        ),
        "position": Member("top", "Where the overlay is shown.", "bottom"),
        "color": Member("#ffffff", "The color of the text.", "#ffffff"),
        "background": Member(
            "#1d4ed8",
            "The color behind the text. The contrast must be at least 3 to 1; the error names colors that do.",
            "#1d4ed8",
        ),
    },
    records={
        "OverlayListed": record(id=ID, type=choice(*overlay.TYPES), name=text("Sale"), date=TIMESTAMP),
        "Overlay": record(
            id=ID,
            type=choice(*overlay.TYPES),
            name=text("Sale"),
            message=text("Everything must go."),
            link=url_or_empty("https://example.com/sale"),
            label=text("Have a look"),
            position=choice(*overlay.POSITIONS),
            color=COLOR,
            background=COLOR,
            date=TIMESTAMP,
        ),
        "OverlayAnswer": record(id=ID, answer=map_of(text("visitor@example.com"), "email"), date=TIMESTAMP),
    },
    operations=(
        Operation("GET", "/api/overlay", "List CTA overlays", listing("cta", "OverlayListed"), query=PAGING),
        Operation("GET", "/api/overlay/{overlay_id}", "Read a CTA overlay", reading("Overlay"), tagged=True),
        Operation(
            "GET",
            "/api/overlay/{overlay_id}/answers",
            "List the answers to an overlay",
            listing("answers", "OverlayAnswer"),
            query=PAGING,
        ),
        Operation(
            "POST",
            "/api/overlay/add",
            "Add a CTA overlay",
            CREATED,
            overlay.NewOverlay,
            {"type": "message", "name": "Sale", "message": "Everything must go.", "color": "#ffffff"},
            codes=(*COUNTED, "overlay_colours_too_close"),
        ),
        Operation(
            "PUT",
            "/api/overlay/{overlay_id}/update",
            "Change a CTA overlay",
            changed("Overlay has been updated successfully.", "Overlay"),
            overlay.OverlayChanges,
            {"label": "Have a look", "position": "top"},
            tagged=True,
            codes=("overlay_colours_too_close",),
        ),
        Operation(
            "DELETE",
            "/api/overlay/{overlay_id}/delete",
            "Delete a CTA overlay",
            done("Overlay has been deleted successfully."),
            description="Its answers are deleted too. Links with this overlay redirect without it from then on.",
        ),
    ),
)
