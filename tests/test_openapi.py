"""The OpenAPI document. tests/conftest.py compares every answer with it."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from marshmallow import Schema
from openapi_spec_validator import validate

from linkmgr.core.error_catalogue import CATALOGUE
from linkmgr.core.fields import qr
from linkmgr.core.fields.query import row_id, row_ids
from linkmgr.document.document import RELEASED
from linkmgr.document.schemas import with_nested
from tests.conftest import BASE_URL, ROOT, Client
from tests.support.document import document, operations, parameters, property_validators, validator, validator_of
from tests.support.operations import examples

# Error codes of pages and the command line, and those raised before an operation is selected.
NOT_OF_OPERATIONS = {
    "headers_too_large", "request_timeout", "expectation_failed", "not_implemented", "redirect_loop", "unknown_host",
    "metrics_token", "no_such_page", "method_not_allowed", "image_missing", "too_many_reports",
    "campaign_missing", "answer_unplaced", "answers_full", "too_many_answers", "link_spent", "sign_in_failed",
    "passwords_off", "sign_in_expired", "sign_ins_limited", "provider_down", "provider_wrong",
    "provider_refused", "account_none", "account_exists", "account_no_email", "identity_taken",
    "identity_last", "identity_other", "remote_user_missing",
    "too_many_sign_ins", "too_many_checks", "account_checks", "too_many_for_account", "password_wrong",
    "password_set_meanwhile", "foreign_origin", "link_password_wrong", "administration_page", "own_login_link",
    "pages_limited", "link_disabled", "role_reads", "role_changes", "account_lost", "account_switched",
    "invitation_spent", "own_invitation", "member_already", "password_short", "password_common", "not_confirmed",
    "code_wrong", "too_many_codes", "codes_enrolled", "passkey_refused", "passkey_known", "factors_full",
}  # fmt: skip

OPERATIONS_OF_DOCUMENT = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]
BODIES = [route.operation.body for route in operations() if route.operation.body]
over_operations = pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS_OF_DOCUMENT)


def test_the_document_is_valid() -> None:
    validate(document())
    assert document()["openapi"].startswith("3.1")


def test_bodies_are_in_the_order_of_their_operations() -> None:
    """The document is the same in all processes, so that they send the same ETag."""
    names = [schema.__name__ for body in BODIES for schema in with_nested(body)]
    assert [name for name in document()["components"]["schemas"] if name in names] == list(dict.fromkeys(names))


@over_operations
def test_an_operation_describes_everything_that_a_client_needs(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    assert operation["summary"]
    assert operation["tags"]
    assert {"200", "400", "429", "500", "503"} <= set(operation["responses"])
    assert ("401" in operation["responses"]) == (operation.get("security") != [])
    assert ("404" in operation["responses"]) == ("{" in path or path.startswith("/api/stats"))  # ids in the query
    assert ("415" in operation["responses"]) == ("requestBody" in operation)
    for status, response in operation["responses"].items():
        shared = response.get("$ref", "").rpartition("/")[2]
        headers = set((document()["components"]["responses"][shared] if shared else response)["headers"])
        headers -= {"ETag", "Idempotency-Replayed", "Link"}
        limits = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy"}
        rows = {f"X-RateLimit-Rows-{name}" for name in ("Limit", "Remaining", "Reset")}
        expected = (
            limits | {"X-Request-Id", "Linkmgr-Version"} | (rows if "/bulk" in path and status == "200" else set())
        )
        assert headers == expected | ({"Retry-After"} if status in ("429", "503") else set())


@over_operations
def test_a_write_has_the_headers_that_make_it_safe_to_repeat(path: str, method: str, operation: dict[str, Any]) -> None:
    named = {parameter.get("$ref", "").rpartition("/")[2] for parameter in operation.get("parameters", [])}
    assert ("Idempotency-Key" in named) == (method != "get")
    # Neither many rows nor the items of a channel have a version.
    changes_one = method in ("put", "delete") and path != "/api/urls/bulk" and "/assign/" not in path
    assert ("If-Match" in named) == ("412" in operation["responses"]) == changes_one
    assert ("Idempotency-Replayed" in operation["responses"]["200"]["headers"]) == (method != "get")
    assert ({"409", "422"} <= set(operation["responses"])) == (method != "get")


def test_every_error_code_of_the_api_is_in_the_document() -> None:
    written = json.dumps(document())
    assert {code for code in CATALOGUE if f'"{code}"' not in written} == NOT_OF_OPERATIONS


def test_it_is_read_without_a_key_and_created_only_once(anonymous: Client, make_app: Callable[..., Flask]) -> None:
    answer = anonymous.http.get("/api/openapi.json")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert answer.get_json()["servers"] == [{"url": BASE_URL}]
    assert answer.headers["X-RateLimit-Remaining"].isdigit()
    again = anonymous.http.get("/api/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    documented = answer.get_json()["paths"]["/api/openapi.json"]["get"]["responses"]
    assert "ETag" in documented["200"]["headers"]
    assert documented["304"] == {"$ref": "#/components/responses/NotModified"}
    assert "ETag" in answer.get_json()["components"]["responses"]["NotModified"]["headers"]
    assert again.headers["X-RateLimit-Remaining"].isdigit()
    public = "https://go.example.org"
    elsewhere = make_app(base_url=public).test_client().get(f"{public}/api/openapi.json").get_json()
    assert elsewhere["servers"] == [{"url": public}]


def test_a_part_has_the_operations_of_some_sections_and_is_valid(anonymous: Client) -> None:
    part = anonymous.http.get("/api/openapi.json?tags=Links,Statistics").get_json()
    validate(part)
    tags = {tag for methods in part["paths"].values() for operation in methods.values() for tag in operation["tags"]}
    assert tags == {"Links", "Statistics"}
    assert part["paths"]["/api/urls"] == document()["paths"]["/api/urls"]
    assert not {"Pixel", "Webhook"} & part["components"]["schemas"].keys()
    assert "webhooks" not in part
    of_events = anonymous.http.get("/api/openapi.json?tags=Webhooks and events").get_json()
    validate(of_events)
    assert of_events["webhooks"] == document()["webhooks"]
    refused = anonymous.get("/api/openapi.json?tags=Link")
    assert (refused.status_code, refused.get_json()["code"]) == (400, "invalid")
    assert "Links, " in refused.get_json()["message"]


def test_it_does_not_delay_the_start() -> None:
    script = "import sys, app; sys.exit('linkmgr.document.document' in sys.modules)"
    environment = {"LINKMGR_SECRET_KEY": "unused" * 6, "LINKMGR_DATABASE_URL": "postgresql://unused"}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True)


# --- what generated clients can read


def parts(value: Any, name: str = "") -> Iterator[dict[str, Any]]:
    """Yield each object in a part of the document, but for examples and the values of members."""
    if isinstance(value, dict):
        if name != "properties":
            yield value
        for inner, part in value.items():
            yield from parts(part, inner) if inner not in ("example", "examples") or name == "properties" else ()
    elif isinstance(value, list):
        for part in value:
            yield from parts(part)


def types(schema: dict[str, Any]) -> list[str]:
    type_ = schema.get("type", [])
    return [type_] if isinstance(type_, str) else type_


def schemas_of_bodies() -> list[dict[str, Any]]:
    bodies = {schema for body in BODIES for schema in with_nested(body)}
    return [document()["components"]["schemas"][body.__name__] for body in bodies]


def is_union(schema: dict[str, Any]) -> bool:
    """Return False for an object or null, which all generators know."""
    others = [schema for schema in schema.get("anyOf", ()) if schema != {"type": "null"}]
    return "oneOf" in schema or ("anyOf" in schema and [*map(list, others)] != [["$ref"]])


def test_a_member_of_a_body_has_one_type() -> None:
    for schema in parts(schemas_of_bodies()):
        assert len(set(types(schema)) - {"null"}) <= 1, schema
        assert schema.keys().isdisjoint({"allOf", "default"}), schema
        assert not is_union(schema), schema


def inline_objects(place: str, schema: Any) -> Iterator[str]:
    """Yield the places of the objects in a schema that have no name."""
    if isinstance(schema, dict):
        if "object" in types(schema) or "allOf" in schema:
            yield place
        for name, part in schema.items():
            yield from inline_objects(f"{place} {name}", part) if name not in ("example", "examples") else ()
    elif isinstance(schema, list):
        for part in schema:
            yield from inline_objects(place, part)


def test_each_object_has_a_name() -> None:
    """Generators call others LinksUpdate200Response, or LinkExportedGeotargetInner."""
    messages = [
        (operation["operationId"], message.get("content", {}))
        for methods in document()["paths"].values()
        for operation in methods.values()
        for message in (operation.get("requestBody", {}), *operation["responses"].values())
    ]
    schemas = document()["components"]["schemas"]
    holders = ("properties", "additionalProperties")
    inner = [(name, [schema.get(key) for key in holders]) for name, schema in schemas.items()]
    assert [place for name, part in [*messages, *inner] for place in inline_objects(name, part)] == []
    assert not [name for name in schemas if re.search(r"\d|Response.+|Inner$|Item$", name) and name != "ChannelItem"]


def test_each_refusal_is_an_error_and_what_changes_a_record_responds_with_the_same_type() -> None:
    responses = document()["components"]["responses"]
    answers: dict[str, set[str]] = {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                stated = responses.get(response.get("$ref", "").rpartition("/")[2], response)
                if content := stated.get("content", {}).get("application/json"):
                    place = "refused" if status >= "400" else f"{method} {path}"
                    answers.setdefault(place, set()).add(content["schema"]["$ref"].rpartition("/")[2])
    assert answers["refused"] == {"Error"}
    for path in ("/api/url/{link_id}", "/api/qr/{qr_id}"):
        assert answers[f"get {path}"] == answers[f"put {path}/update"] == answers[f"post {path}/restore"], path


def test_python_gets_at_most_300_models(tmp_path: Path) -> None:
    """Reading them costs programmers time, and programs memory. Enumerations count. Until each object had a name and
    equal ones shared it, there were 430."""
    (tmp_path / "openapi.json").write_text(json.dumps(document()))
    (tmp_path / "config.yml").write_text("post_hooks: []\n")
    generator = Path(sys.executable).with_name("openapi-python-client")
    generate: list[str | Path] = [generator, "generate", "--path", "openapi.json", "--config", "config.yml"]
    command = [*generate, "--meta", "none", "--output-path", "generated"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    models = [*(tmp_path / "generated" / "models").glob("[a-z]*.py")]
    assert len(models) <= 300


def enumerations(schema: dict[str, Any]) -> dict[str, str]:
    """Return the names of the enumerations that members of an object have as their type, or as that of their items."""
    schemas = document()["components"]["schemas"]
    named = {
        member: part.get("items", part).get("$ref", "").rpartition("/")[2]
        for member, part in schema.get("properties", {}).items()
    }
    return {member: name for member, name in named.items() if types(schemas.get(name, {})) == ["string"]}


def sent_as(name: str) -> dict[str, str]:
    """Return the enumerations of the bodies that create or change a record."""
    schemas, record = document()["components"]["schemas"], re.sub("(Listed|Exported)$", "", name)
    return {
        member: name
        for suffix in ("Create", "Update")
        for member, name in enumerations(schemas.get(f"{record}{suffix}", {})).items()
    }


def test_responses_may_have_further_values_and_members_except_those_of_records_that_are_sent_back() -> None:
    bodies = [id(schema) for schema in schemas_of_bodies()]
    responses = [operation.values[2]["responses"] for operation in OPERATIONS_OF_DOCUMENT]  # type: ignore[index]
    schemas = document()["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if types(schema) == ["string"]}
    records = {name: schema for name, schema in schemas.items() if id(schema) not in bodies and name not in closed}
    for schema in parts([responses, [*records.values()]]):
        assert not ("enum" in schema and "string" in types(schema)), schema
    for name, schema in records.items():
        assert enumerations(schema).items() <= sent_as(name).items(), name


def test_a_record_has_the_types_of_the_bodies_that_change_it() -> None:
    """Programs in languages with types send back what they have read."""
    schemas, shared = document()["components"]["schemas"], set()
    for name, schema in schemas.items():
        sent = {member: type_ for member, type_ in sent_as(name).items() if member in schema.get("properties", {})}
        if sent and not re.search("(Create|Update)$", name):
            assert sent == enumerations(schema), name
            shared.add(name)
        for member, part in schemas.get(f"{name}Update", {}).get("properties", {}).items():
            shown = schema["properties"].get(member, {})
            objects = [re.findall(r"#/components/schemas/(\w+)", json.dumps(each)) for each in (part, shown)]
            assert objects[0] == objects[1] or not shown, (name, member)
    assert {"BioPage", "Key", "Link", "Overlay", "User", "Webhook"} <= shared


def test_integers_have_64_bits_unless_they_are_clamped() -> None:
    for schema in parts(document()):
        if "integer" in types(schema) and schema.keys().isdisjoint({"enum", "default"}):
            assert schema["format"] == "int64", schema


def test_generators_read_each_schema_whole() -> None:
    """Examples beside a reference, patterns of headers, large numbers, closed responses and unions break some."""
    for schema in parts(document()):
        assert not {"$ref", "examples"} <= schema.keys(), schema
        assert schema.get("maximum", 0) <= 2**53, schema
        assert schema.get("additionalProperties") is not False, schema
        assert len({*types(schema)} - {"null"}) <= 1, schema
        assert not is_union(schema), schema
        assert not (schema.get("in") == "header" and "pattern" in schema["schema"]), schema


def test_an_enumeration_is_a_component_once_and_has_the_values_that_are_declared() -> None:
    schemas = document()["components"]["schemas"]
    components = [schema for schema in schemas.values() if "enum" in schema]
    everywhere = [schema for schema in parts(document()) if "enum" in schema]
    assert len(everywhere) == len(components) == len({str(schema["enum"]) for schema in everywhere})
    constants = [name for schema in components for name in schema.get("x-enum-varnames", ())]
    assert len(constants) == len({name for name in constants if name.isidentifier()})  # Go has one scope for all
    for route in operations():
        for parameter in document()["paths"][route.path][route.method.lower()].get("parameters", []):
            declared = (route.operation.query | route.operation.path).get(parameter.get("name"))
            if declared and "enum" in declared.json:
                schema = schemas[parameter["schema"]["$ref"].rpartition("/")[2]]
                assert schema["enum"] == declared.json["enum"]
                assert "default" not in schema
                assert parameter.get("x-default") == declared.default


@over_operations
def test_an_operation_has_one_type_of_request_and_of_response(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    for message in (operation.get("requestBody"), operation["responses"]["200"]):
        assert message is None or len(message["content"]) == 1


def test_names_are_those_that_a_reader_expects() -> None:
    assert {"UserUpdate", "LinkStatus", "Flag", "SortDirection", "ListOrder", "BotFilter"} <= document()["components"][
        "schemas"
    ].keys()
    assert not any(
        parameter.get("name") == "format" for parameter in parts(document()["paths"])
    )  # of another media type


def test_parameters_that_are_ids_are_integers() -> None:
    for route in operations():
        for name, parameter in route.operation.query.items():
            if parameter.parse in (row_id, row_ids):
                assert parameter.json.get("items", parameter.json)["type"] == "integer", (route.operation.id, name)


def test_new_parameters_come_behind_those_of_the_last_release() -> None:
    """Arguments of some clients have no names. linkmgr/document/released.txt has the order, which a release writes."""
    now = {line.split()[0]: line.split()[1:] for line in parameters()}
    for operation_id, names in RELEASED.items():
        assert now[operation_id][: len(names)] == names
    assert [*now["links.list"]][-4:] == ["externalid", "ids", "target", "updated_since"]


def test_webhooks_have_a_tag_and_are_no_requests_of_clients() -> None:
    tags = {tag["name"] for tag in document()["tags"]}
    for methods in document()["webhooks"].values():
        assert {*methods["post"]["tags"]} <= tags
        assert methods["post"]["x-internal"] is True  # else generators make requests of them


def test_the_description_is_a_paragraph_with_a_link_to_the_reference() -> None:
    description = document()["info"]["description"]
    assert "\n\n" not in description
    assert f"({BASE_URL}/api/docs)" in description


# --- bodies


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_member_has_a_valid_example(body: type[Schema]) -> None:
    sent = examples(body)
    for name, property_validator in property_validators(body.__name__).items():
        property_validator.validate(sent[name])


@pytest.mark.parametrize(("type_", "schema"), qr.OBJECTS.items())
def test_the_examples_of_qr_code_data_create_one(alice: Client, type_: str, schema: type[Schema]) -> None:
    data = examples(schema)
    validator(schema.__name__).validate(data)
    assert alice.post("/api/qr/add", {"type": type_, "data": data}).status_code == 200


@over_operations
def test_an_example_is_a_valid_response(path: str, method: str, operation: dict[str, Any]) -> None:
    contents = operation["responses"]["200"]["content"]
    if "application/json" not in contents:
        return
    content = contents["application/json"]
    assert "example" in content or operation["operationId"] == "document.get"
    validator_of(content["schema"]).validate(content.get("example", {}))
