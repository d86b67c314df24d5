"""Programs that read each record with a generated client, and send it back with the types of the client.

They are written from what was generated: each member that the body of a change has is set to what the record has, and
compilers say where the types differ."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.document import document
from tests.support.operations import KEYED
from tests.support.stage import Stage


class Pair(NamedTuple):
    """The operations that read a record and change it, and a row of it."""

    record: str
    read: str
    change: str
    path: str  # of the read
    noun: str  # of the id in the path
    row: int
    key: str

    @property
    def body(self) -> str:
        return f"{self.record}Update"


def pairs(stage: Stage) -> Iterator[Pair]:
    for call in KEYED:
        path = call.path.removesuffix("/update")
        read = document()["paths"].get(path, {}).get("get")
        if call.method == "PUT" and path != call.path and path.endswith("_id}") and read:
            assert call.operation.body
            record, (noun,) = call.operation.body.__name__.removesuffix("Update"), re.findall(r"{(\w+)_id}", path)
            key = stage.caller(call).key or ""
            yield Pair(record, read["operationId"], call.operation.id, path, noun, stage.ids[noun], key)


def camel(name: str) -> str:
    """Return the name of an operation, a class or a parameter in most languages."""
    first, *others = re.split(r"[._]", name)
    return first[:1].lower() + first[1:] + "".join(word[:1].upper() + word[1:] for word in others)


def pascal(name: str) -> str:
    return camel(name)[:1].upper() + camel(name)[1:]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace(".", "_").lower()


def _found(folder: Path, files: str, pattern: str) -> tuple[str, ...]:
    """Return the groups of a pattern in the first of the generated files that has it."""
    for file in sorted(folder.glob(f"generated/{files}")):
        if match := re.search(pattern, file.read_text(), re.MULTILINE):
            return match.groups()
    raise AssertionError(f"no {pattern} in {files}")


def typescript_fetch(pair: Pair, folder: Path) -> str:
    [service] = _found(folder, "apis/*.ts", rf"export class (\w+)(?=[\s\S]*async {camel(pair.read)}\()")
    row = f"{pair.noun}Id: {pair.row}"
    return f"""{{
    const service = new api.{service}(new api.Configuration({{ basePath: base, accessToken: "{pair.key}" }}));
    const record: api.{pair.record} = (await service.{camel(pair.read)}({{ {row} }})).record;
    const body: api.{pair.body} = record;
    await service.{camel(pair.change)}({{ {row}, {camel(pair.body)}: body }});
  }}"""


def typescript_axios(pair: Pair, folder: Path) -> str:
    method = rf"public {camel(pair.read)}\("
    [service] = _found(folder, "api.ts", rf"export class (\w+)(?: (?!class)|[^ ])*{method}")
    row = f"{pair.noun}Id: {pair.row}"
    return f"""{{
    const service = new api.{service}(new api.Configuration({{ basePath: base, accessToken: "{pair.key}" }}));
    const record: api.{pair.record} = (await service.{camel(pair.read)}({{ {row} }})).data.record;
    const body: api.{pair.body} = record;
    await service.{camel(pair.change)}({{ {row}, {camel(pair.body)}: body }});
  }}"""


def openapi_fetch(pair: Pair, folder: Path) -> str:
    options = f'params: {{ path: {{ {pair.noun}_id: {pair.row} }} }}, headers: {{ Authorization: "Bearer {pair.key}" }}'
    return f"""{{
    const record: Schemas["{pair.record}"] = (await client.GET("{pair.path}", {{ {options} }})).data!.record;
    const body: Schemas["{pair.body}"] = record;
    check((await client.PUT("{pair.path}/update", {{ {options}, body }})).response);
  }}"""


def hey_api(pair: Pair, folder: Path) -> str:
    options = f'path: {{ {pair.noun}_id: {pair.row} }}, auth: () => "{pair.key}", throwOnError: true as const'
    return f"""{{
    const record: api.{pair.record} = (await api.{camel(pair.read)}({{ {options} }})).data.record;
    const body: api.{pair.body} = record;
    await api.{camel(pair.change)}({{ {options}, body }});
  }}"""


def python(pair: Pair, folder: Path) -> str:
    [service] = _found(folder, "linkmgr_client/api/*.py", rf"^class (\w+)(?=[\s\S]*def {snake(pair.read)}\()")
    return f"""
service = api.{service}(api.ApiClient(api.Configuration(host=base, access_token="{pair.key}")))
record = service.{snake(pair.read)}({pair.row}).record
names = [name for name in api.{pair.body}.model_fields if hasattr(record, name)]
body = api.{pair.body}(**{{name: getattr(record, name) for name in names}})
service.{snake(pair.change)}({pair.row}, {snake(pair.body)}=body)"""


def openapi_python_client(pair: Pair, folder: Path) -> str:
    modules = {
        name: next((folder / "generated" / "api").glob(f"*/{snake(name)}.py")) for name in (pair.read, pair.change)
    }
    read, change = (f"api.{path.parent.name}.{path.stem}" for path in modules.values())
    return f"""
client = AuthenticatedClient(base, "{pair.key}", raise_on_unexpected_status=True)
record = importlib.import_module("generated.{read}").sync({pair.row}, client=client).record
body = models.{pair.body}(
    **{{name: getattr(record, name) for name in signature(models.{pair.body}).parameters if hasattr(record, name)}}
)
changed = importlib.import_module("generated.{change}").sync({pair.row}, client=client, body=body)
assert changed.record.id == {pair.row}, changed"""


def ruby(pair: Pair, folder: Path) -> str:
    files, name = "lib/openapi_client/api/*.rb", snake(pair.change)
    [service] = _found(folder, files, rf"class (\w+)(?=[\s\S]*def {snake(pair.read)}\()")
    [sent] = _found(folder, files, rf"def {name}\((.*)\)$")
    body = "body" if snake(pair.body) in sent.split(", ") else f"{{ {snake(pair.body)}: body }}"
    return f"""
configuration.access_token = "{pair.key}"
record = {service}.new.{snake(pair.read)}({pair.row}).record
names = {pair.body}.attribute_map.keys.select {{ |name| record.respond_to?(name) }}
body = {pair.body}.new(names.to_h {{ |name| [name, record.public_send(name)] }})
{service}.new.{name}({pair.row}, {body})"""


def php(pair: Pair, folder: Path) -> str:
    [service] = _found(folder, "lib/Api/*.php", rf"^class (\w+)(?=[\s\S]*function {camel(pair.read)}\()")
    return f"""
$service = new Api\\{service}($http, (new Configuration())->setHost($base)->setAccessToken('{pair.key}'));
$record = $service->{camel(pair.read)}({pair.row})->getRecord();
$body = new Model\\{pair.body}();
foreach (Model\\{pair.body}::getters() as $name => $getter) {{
    if (method_exists($record, $getter)) {{
        $body->{{Model\\{pair.body}::setters()[$name]}}($record->$getter());
    }}
}}
$service->{camel(pair.change)}({pair.noun}_id: {pair.row}, {snake(pair.body)}: $body);"""


def java(pair: Pair, folder: Path) -> str:
    sources = "src/main/java/org/openapitools/client"
    model = folder / "generated" / sources / "model"
    got = re.findall(r"public \S+ (get\w+)\(\)", (model / f"{pair.record}.java").read_text())
    sent = re.findall(r"public void set(\w+)\(", (model / f"{pair.body}.java").read_text())
    [service] = _found(folder, f"{sources}/api/*.java", rf"public class (\w+)(?=[\s\S]* {camel(pair.read)}\()")
    arguments = {}
    for name in (camel(pair.read), camel(pair.change)):
        pattern = rf"public \w+ {name}\(((?:(?!additionalHeaders)[^)])*)\) throws"
        [stated] = _found(folder, f"{sources}/api/{service}.java", pattern)
        types = [re.sub(r"@\S+ ", "", part).split()[0] for part in stated.split(", ")]
        arguments[name] = ", ".join(
            [f"{pair.row}L", *("body" if type_ == pair.body else "null" for type_ in types[1:])]
        )
    sets = "\n".join(f"      body.set{name}(record.get{name}());" for name in sent if f"get{name}" in got)
    return f"""    {{
      client.setBearerToken("{pair.key}");
      {service} service = new {service}(client);
      {pair.record} record = service.{camel(pair.read)}({arguments[camel(pair.read)]}).getRecord();
      {pair.body} body = new {pair.body}();
{sets}
      service.{camel(pair.change)}({arguments[camel(pair.change)]});
    }}"""


def go(pair: Pair, folder: Path) -> str:
    generated = folder / "generated"
    files = {name: (generated / f"model_{snake(name)}.go").read_text() for name in (pair.record, pair.body)}
    got = dict(re.findall(r"Get(\w+)Ok\(\) \((\S+), bool\)", files[pair.record]))
    sent = re.findall(rf"\(o \*{pair.body}\) Set(\w+)\(v (\S+)\)", files[pair.body])
    [service] = _found(folder, "api_*.go", rf"func \(a \*(\w+)Service\) {pascal(pair.read)}\(")
    sets = "\n".join(
        f"\t\tif value, _ := record.Get{name}Ok(); value != nil {{ body.Set{name}({'*' * (got[name] != type_)}value) }}"
        for name, type_ in sent
        if name in got
    )
    return f"""	{{
		ctx := context.WithValue(context.Background(), api.ContextAccessToken, "{pair.key}")
		read, _, err := client.{service}.{pascal(pair.read)}(ctx, {pair.row}).Execute()
		check(err)
		record, body := read.Record, api.{pair.body}{{}}
{sets}
		_, _, err = client.{service}.{pascal(pair.change)}(ctx, {pair.row}).{pair.body}(body).Execute()
		check(err)
	}}"""


_FETCH = """import * as api from "./generated";
async function main(base: string) {
  STATEMENTS
}
main(process.argv[2]);
"""
_OPENAPI_FETCH = """import createClient from "openapi-fetch";
import type { components, paths } from "./generated";
type Schemas = components["schemas"];
function check(response: Response) {
  if (!response.ok) throw new Error(response.url);
}
async function main(base: string) {
  const client = createClient<paths, "application/json">({ baseUrl: base });
  STATEMENTS
}
main(process.argv[2]);
"""
_HEY_API = """import * as api from "./generated";
import { client } from "./generated/client.gen";
async function main(base: string) {
  client.setConfig({ baseUrl: base });
  STATEMENTS
}
main(process.argv[2]);
"""
_PYTHON = """import sys
import linkmgr_client as api
base = sys.argv[1]
STATEMENTS
"""
_OPENAPI_PYTHON_CLIENT = """import importlib, sys
from inspect import signature
from generated import AuthenticatedClient, models
base = sys.argv[1]
STATEMENTS
"""
_RUBY = """require "openapi_client"
include OpenapiClient
configuration = Configuration.default
configuration.host = ARGV[0].delete_prefix("http://")
STATEMENTS
"""
_JAVA = """import org.openapitools.client.ApiClient;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;
class WrittenBack {
  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient().setBasePath(arguments[0]);
STATEMENTS
  }
}
"""
_GO = """package main

import (
	"context"
	"os"

	api "example.com/linkmgr/client"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	configuration := api.NewConfiguration()
	configuration.Servers[0].URL = os.Args[1]
	client := api.NewAPIClient(configuration)
STATEMENTS
}
"""
_PHP = (
    (Path(__file__).parents[1] / "clients" / "openapi_generator.php").read_text().partition("[, $base")[0]
    + """
$base = $argv[1];
$http = new GuzzleHttp\\Client();
STATEMENTS
"""
)
LANGUAGES = {
    "typescript-fetch": (typescript_fetch, _FETCH),
    "typescript-axios": (typescript_axios, _FETCH),
    "openapi-fetch": (openapi_fetch, _OPENAPI_FETCH),
    "hey-api": (hey_api, _HEY_API),
    "python": (python, _PYTHON),
    "openapi-python-client": (openapi_python_client, _OPENAPI_PYTHON_CLIENT),
    "ruby": (ruby, _RUBY),
    "php": (php, _PHP),
    "java": (java, _JAVA),
    "go": (go, _GO),
}


def program(language: str, written: list[Pair], folder: Path) -> str:
    statements, text = LANGUAGES[language]
    return text.replace("STATEMENTS", "\n".join(statements(pair, folder) for pair in written))
