from linkmgr.core.database.statements import Row
from linkmgr.core.fields.base import Text
from linkmgr.core.fields.links import MAX_NAME
from linkmgr.core.fields.member import member
from linkmgr.core.fields.resource import Resource, Stored, Words, created, row_id, updated
from linkmgr.features.utm import repository as utm


def _parameter(about: str, example: str, label: str) -> Text:
    return member(Text(MAX_NAME, allow_empty=True), about, example, label=label)


class UtmTemplate(Resource):
    id = row_id()
    name = member(Text(required=True), "Its name in lists.", "Newsletter", label="Name")
    utm_source = _parameter(
        "Where visitors come from, such as a site or a newsletter.", "newsletter", "Source"
    )
    utm_medium = _parameter("How they come, such as email or social.", "email", "Medium")
    utm_campaign = _parameter(
        "The name of the campaign. It need not be one of your campaigns.", "summer", "Campaign"
    )
    utm_term = _parameter("The keywords of a paid search.", "rye bread", "Term")
    utm_content = _parameter(
        "Tells links with the same target apart, such as button and footer.", "button", "Content"
    )
    date = created()
    updated = updated()


PARAMETERS = {name: field for name, field in UtmTemplate.controls().items() if name != "name"}


def parameters_of(template: Row) -> list[tuple[str, str]]:
    return [(name, template[name]) for name in PARAMETERS if template[name]]


UTM_TEMPLATES = Stored(
    UtmTemplate,
    Words("UTM template", path="utm", plural="utm", table="utm_templates"),
    rows=utm,
    create=utm.add,
    change=utm.update,
)
