"""Clients that generators make of the document, each used by a program in tests/clients/ against the running service.

All programs do the same: create links, one by one and in bulk, list them by cursor, look one up by its short URL, read
statistics, create a webhook and QR codes, get an image and a CSV, cause an error, read a link, delete it, upload a file
of links, read its failed rows as JSON and as CSV, put a link with rules and variants by its external id, try it, report
a conversion, and restore it from the bin. Each prints what it saw. Others send all records back."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openapi_generator_cli
import pytest

from tests.conftest import MANY, Client
from tests.support import factories
from tests.support.busy import busy_at_first
from tests.support.document import document
from tests.support.factories import Sql
from tests.support.receivers import Deliver, Receiver, subscribe
from tests.support.servers import free_port, is_open
from tests.support.stage import Stage
from tests.support.targets import wait_until
from tests.support.visited import Store, Visited
from tests.support.written_back import pairs, program

CLIENTS = Path(__file__).parent / "clients"
ROOT = CLIENTS.parents[1]
GENERATOR = Path(sys.executable).with_name("openapi-generator-cli")
NODE_MODULES = Path(sys.prefix, "clients", "node_modules")  # installed by `make clients`
COMPILER = NODE_MODULES / ".bin" / "tsc"
STRICT = "--strict", "--target", "es2022", "--module", "commonjs", "--moduleResolution", "node10", "--types", "node"
# Debian has no Jackson for dates. The archive of the generator has it.
JARS = [Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")] + [
    Path(f"/usr/share/java/{name}.jar")
    for name in ("httpclient5", "httpcore5", "httpcore5-h2", "geronimo-annotation-1.3-spec")
]
MCP_PYTHON = Path(sys.prefix, "clients", "mcp", "bin", "python")  # installed by `make clients`

Use = Callable[..., None]


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Return the output of a command. Its other messages are those of the test."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(**packages: str) -> None:
    for command, package in packages.items():
        if not (shutil.which(command) or Path(command).exists()):
            pytest.skip(f"{command} is missing: apt-get install {package}")


@pytest.fixture
def folder(base: str, tmp_path: Path) -> Path:
    """A folder with the document, as it is served."""
    with urlopen(f"{base}/api/openapi.json") as served:
        (tmp_path / "openapi.json").write_bytes(served.read())
    return tmp_path


@pytest.fixture
def base(serve: Callable[..., str], alice: Client, store: Store) -> str:
    """The URL of a service in which alice has a link with three clicks."""
    seeded = alice.add("/api/url/add", {"url": "https://example.com/seeded", "custom": "seeded"})
    store([Visited(seeded, datetime.now(UTC))] * 3)
    return serve("--workers", "1", rate_limit=MANY, domain_check="off")


@pytest.fixture
def use(base: str, alice: Client, tmp_path: Path) -> Use:
    """Run a program with the URL of the service, a key and a file, and check what it has seen."""
    file = tmp_path / "links.csv"
    file.write_text("url,custom\nhttps://example.com/good,good\nftp://example.com,bad\n")
    csv = document()["paths"]["/api/urls/export.csv"]["get"]["responses"]["200"]["content"]["text/csv"]["example"]

    def check(*command: str | Path, folder: Path, **environment: str) -> None:
        seen: dict[str, Any] = json.loads(run(*command, base, alice.key or "", file, folder=folder, **environment))
        assert seen == {
            "created": f"{base}/first",
            "bulk": 2,
            "listed": [f"https://example.com/{path}" for path in (3, 2, 1, "seeded")],
            "found": "seeded",
            "clicks": 3,
            "webhook": "whsec_",
            "codes": [False, "PNG"],
            "csv": csv.strip(),
            "error": "alias_taken",
            "read": "first",
            "deleted": "missing",
            "imported": [1, 1],
            "failed": [[2, "ftp://example.com"]],
            "rejected": "url,custom,error",
            "toured": ["https://example.com/de", "no_visit", True, 2, True],
        }

    return check


@pytest.fixture
def send_back(base: str, alice: Client, admin: Client, sql: Sql) -> Use:
    """Let a client read each record and send it back, and check that no record has changed."""

    def records(stage: Stage) -> list[dict[str, Any]]:
        callers = {client.key: client for client in (alice, admin)}
        paths = [(callers[pair.key], re.sub("{.*}", str(pair.row), pair.path)) for pair in pairs(stage)]
        return [
            {name: value for name, value in caller.get(path).get_json()["record"].items() if name != "updated"}
            for caller, path in paths
        ]

    def check(language: str, folder: Path, file: Path, *commands: tuple[str | Path, ...], **environment: str) -> None:
        stage = Stage(alice, admin, sql)
        file.write_text(program(language, [*pairs(stage)], folder))
        before = records(stage)
        *first, last = commands
        for command in (*first, (*last, base)):
            run(*command, folder=file.parent, **environment)
        assert records(stage) == before

    return check


def generate(language: str, folder: Path, *options: str) -> None:
    run(GENERATOR, "generate", "-i", "openapi.json", "-g", language, "-o", "generated", *options, folder=folder)


def compile_typescript(name: str, folder: Path) -> None:
    """Compile a program and all that was generated, also what the program does not use."""
    need(node="nodejs")
    shutil.copy(CLIENTS / f"{name}.ts", folder)
    run(COMPILER, *STRICT, f"{name}.ts", *(folder / "generated").rglob("*.ts"), folder=folder)


@pytest.fixture
def packages(folder: Path) -> Path:
    """The programs of the npm packages, which are in the folder of the document."""
    if not COMPILER.exists():
        pytest.skip("the npm packages are missing: make clients")
    (folder / "node_modules").symlink_to(NODE_MODULES)
    return folder / "node_modules" / ".bin"


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_python(folder: Path, use: Use, send_back: Use) -> None:
    generate("python", folder, "--package-name", "linkmgr_client")
    use(sys.executable, CLIENTS / "openapi_generator.py", folder=folder, PYTHONPATH="generated")
    send_back("python", folder, folder / "back.py", (sys.executable, "back.py"), PYTHONPATH="generated")


@pytest.mark.clients
def test_openapi_python_client_makes_a_client(folder: Path, use: Use, send_back: Use) -> None:
    (folder / "config.yml").write_text("post_hooks: []\n")
    command = GENERATOR.with_name("openapi-python-client"), "generate", "--meta", "none", "--config", "config.yml"
    run(*command, "--path", "openapi.json", "--output-path", "generated", folder=folder)
    use(sys.executable, CLIENTS / "openapi_python_client.py", folder=folder, PYTHONPATH=".")
    send_back("openapi-python-client", folder, folder / "back.py", (sys.executable, "back.py"), PYTHONPATH=".")


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_go(folder: Path, use: Use, send_back: Use) -> None:
    need(go="golang-go")
    generate("go", folder, "--git-host", "example.com", "--git-user-id", "linkmgr", "--git-repo-id", "client")
    program = folder / "generated" / "program"
    program.mkdir()
    shutil.copy(CLIENTS / "openapi_generator.go", program)
    run("go", "build", "-o", folder, "./program", folder=folder / "generated")
    use(folder / "program", folder=folder)
    (program.parent / "back").mkdir()
    build, back = ("go", "build", "-o", folder, "."), (folder / "back",)
    send_back("go", folder, program.parent / "back" / "main.go", build, back)


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_php(folder: Path, use: Use, send_back: Use) -> None:
    need(php="php-cli php-curl php-mbstring php-guzzlehttp-guzzle")
    generate("php", folder)
    use("php", CLIENTS / "openapi_generator.php", folder=folder / "generated")
    send_back("php", folder, folder / "generated" / "back.php", ("php", "back.php"))


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_ruby(folder: Path, use: Use, send_back: Use) -> None:
    need(ruby="ruby ruby-typhoeus")
    generate("ruby", folder)
    use("ruby", "-Igenerated/lib", CLIENTS / "openapi_generator.rb", folder=folder)
    send_back("ruby", folder, folder / "back.rb", ("ruby", "-Igenerated/lib", "back.rb"))


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_java(folder: Path, use: Use, send_back: Use) -> None:
    """The default library needs packages that Debian lacks, and the library `native` reads a CSV as JSON. The option
    leaves out another such package, which can send null."""
    packages = dict.fromkeys(map(str, JARS), "libhttpclient5-java libgeronimo-annotation-1.3-spec-java")
    need(javac="openjdk-17-jdk-headless", **packages)
    generate("java", folder, "--library", "apache-httpclient", "--additional-properties", "openApiNullable=false")
    path = os.pathsep.join(map(str, (folder, *JARS)))
    javac = "javac", "-proc:none", "-encoding", "UTF-8", "-cp", path, "-d", folder
    sources = "generated/src/main/java"
    run(*javac, CLIENTS / "OpenapiGenerator.java", *(folder / sources).rglob("*.java"), folder=folder)
    use("java", "-cp", path, "OpenapiGenerator", folder=folder)
    run_back = "java", "-cp", path, "WrittenBack"
    send_back("java", folder, folder / "WrittenBack.java", (*javac, "WrittenBack.java"), run_back)


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_typescript(
    folder: Path, packages: Path, use: Use, send_back: Use
) -> None:
    generate("typescript-fetch", folder)
    compile_typescript("openapi_generator", folder)
    use("node", "openapi_generator.js", folder=folder)
    send_back("typescript-fetch", folder, folder / "back.ts", (COMPILER, *STRICT, "back.ts"), ("node", "back.js"))


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_axios(folder: Path, packages: Path, use: Use, send_back: Use) -> None:
    generate("typescript-axios", folder, "--additional-properties", "useSingleRequestParameter=true")
    compile_typescript("openapi_axios", folder)
    use("node", "openapi_axios.js", folder=folder)
    send_back("typescript-axios", folder, folder / "back.ts", (COMPILER, *STRICT, "back.ts"), ("node", "back.js"))


@pytest.mark.clients
def test_openapi_typescript_makes_types_for_openapi_fetch(
    folder: Path, packages: Path, use: Use, send_back: Use
) -> None:
    run(packages / "openapi-typescript", "openapi.json", "-o", "generated.d.ts", folder=folder)
    compile_typescript("openapi_fetch", folder)
    use("node", "openapi_fetch.js", folder=folder)
    send_back("openapi-fetch", folder, folder / "back.ts", (COMPILER, *STRICT, "back.ts"), ("node", "back.js"))


@pytest.mark.clients
def test_hey_api_makes_a_client(folder: Path, packages: Path, use: Use, send_back: Use) -> None:
    run(packages / "openapi-ts", "-i", "openapi.json", "-o", "generated", folder=folder)
    compile_typescript("hey_api", folder)
    use("node", "hey_api.js", folder=folder)
    send_back("hey-api", folder, folder / "back.ts", (COMPILER, *STRICT, "back.ts"), ("node", "back.js"))


@pytest.mark.clients
def test_redocly_has_no_warning_that_its_configuration_does_not_explain(folder: Path, packages: Path) -> None:
    command = packages / "redocly", "lint", "--config", CLIENTS / "redocly.yaml", "--format", "json", "openapi.json"
    assert json.loads(run(*command, folder=folder))["problems"] == []


@pytest.mark.clients
def test_spectral_has_no_warning_that_its_configuration_does_not_explain(folder: Path, packages: Path) -> None:
    command = (
        packages / "spectral",
        "lint",
        "--quiet",
        "--ruleset",
        CLIENTS / "spectral.yaml",
        "--format",
        "json",
        "openapi.json",
    )
    assert json.loads(run(*command, folder=folder)) == []


@pytest.fixture
def mcp_url(base: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of the MCP server over HTTP, which has no key of its own, or "" for one that the client starts."""
    if not MCP_PYTHON.exists():
        pytest.skip("mcp is missing: make clients")
    if request.param == "stdio":
        yield ""
        return
    port = free_port()
    program = ROOT / "deploy" / "mcp" / "linkmgr_mcp.py"
    with subprocess.Popen((MCP_PYTHON, program, "--http", str(port)), env=os.environ | {"API_URL": base}) as process:
        wait_until(lambda: is_open(port))
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


@pytest.mark.clients
@pytest.mark.parametrize("mcp_url", ["stdio", "http"], indirect=True)
def test_a_client_of_the_model_context_protocol_does_six_tasks(
    mcp_url: str, base: str, alice: Client, store: Store
) -> None:
    sale = alice.add("/api/url/add", {"url": "https://example.com/sale", "metatitle": "Sale", "custom": "sale"})
    last_month = datetime.now(UTC).replace(day=1) - timedelta(days=1)
    store([Visited(sale, last_month)] * 2)
    store(
        [Visited(alice.add("/api/url/add", {"url": f"https://example.com/{n}"}), datetime.now(UTC)) for n in range(9)]
    )
    arguments = base, alice.key or "", ROOT / "deploy" / "mcp", mcp_url
    seen = json.loads(run(MCP_PYTHON, CLIENTS / "mcp_client.py", *arguments, folder=CLIENTS))
    assert seen.pop("size") < 35_000
    assert re.fullmatch(
        r"refused: The answer has [0-9,]+ characters, and at most 20,000 are shown. Ask for less: "
        "send a smaller `limit` or a shorter `period` or fewer names in `by`.",
        seen.pop("long"),
    )
    assert seen == {
        "tools": 13,
        "undescribed": [],
        "untitled": [],
        "paths": [],
        "reads": ["find_links", "list_campaigns", "list_domains", "read_account", "read_link", "read_statistics"],
        "destroys": ["delete_link", "update_link"],
        "unknown": seen["unknown"],
        "created": [f"{base}/first", True, ["data", "error", "is_new", "record", "short"]],
        "updated": "https://example.com/2",
        "most": [["Sale", f"{base}/sale", 2]],
        "left": seen["left"],
        "restored": f"{base}/first",
        "final": "refused: 'bin' cannot be chosen: it is always 1.",
        "shorter": True,
        "left out": ["characters are left out here.", "first"],
        "code": True,
        "taken": seen["taken"],
        "missing": "refused: 'link_id' is needed.",
    }
    assert "Did you mean 'custom'?" in seen["unknown"]
    assert "alias_taken" in seen["taken"]
    assert ("first" in seen["left"], "seeded" in seen["left"]) == (False, True)


SETTINGS = {"AUTHOR": "Ada", "REPOSITORY": "https://example.org/linkmgr", "LICENSE": "MIT"}


@pytest.fixture(scope="module")
def sdk() -> Path:
    run("make", "sdk", *(f"{name}={value}" for name, value in SETTINGS.items()), folder=ROOT)
    return ROOT / "var" / "sdk"


@pytest.fixture
def example(
    base: str, alice: Client, sql: Sql, receiver: Receiver, deliver: Deliver
) -> Iterator[Callable[[Path, str], tuple[str, list[str]]]]:
    """Return the code in the README of a package for a busy service with 102 links, a call of its last function, and
    the arguments of this: the headers and the body of a webhook."""
    for _ in range(101):
        factories.link(sql, alice.id)
    _, secret = subscribe(alice, receiver.url, "campaign.created")
    alice.add("/api/campaign/add", {"name": "Spring"})
    deliver()
    [sent] = receiver.received

    with busy_at_first(base) as proxy:

        def read(package: Path, call: str) -> tuple[str, list[str]]:
            [code] = re.findall(r"```\w+\n(.*?)```", (package / "README.md").read_text(), re.DOTALL)
            for text, value in (
                ("https://go.example.org", proxy), ("your API key", alice.key), ("secret of the webhook", secret)
            ):  # fmt: skip
                code = code.replace(text, value)
            return code + call, [json.dumps(sent.headers), sent.body.decode()]

        yield read


def seen(output: str, base: str) -> None:
    """Check that a program created a link, listed all, was refused one, and verified a webhook, but no changed one."""
    lines = sorted(output.splitlines())
    assert lines[:2] == ["200", "400"]
    assert f"{base}/seeded 3" in lines
    assert lines[-1] == "missing There is no link with this id."
    assert len([line for line in lines if line.startswith(base)]) == 104


@pytest.mark.clients
def test_the_package_for_python_is_installed_and_used(
    sdk: Path, tmp_path: Path, base: str, example: Callable[[Path, str], tuple[str, list[str]]]
) -> None:
    project = tomllib.loads((sdk / "python" / "pyproject.toml").read_text())["project"]
    assert [project["authors"][0]["name"], project["urls"]["Repository"], project["license"]] == [*SETTINGS.values()]
    run(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", sdk / "python", folder=tmp_path)
    code, arguments = example(
        sdk / "python",
        "import json, sys\nheaders, body = json.loads(sys.argv[1]), sys.argv[2].encode()\n"
        "print(receive(headers, body))\nprint(receive(headers, body + b' '))",
    )
    seen(run(python, "-c", code, *arguments, folder=tmp_path), base)


@pytest.mark.clients
def test_the_package_of_npm_is_installed_and_used(
    sdk: Path, packages: Path, base: str, example: Callable[[Path, str], tuple[str, list[str]]]
) -> None:
    need(node="nodejs", npm="npm")
    folder, package = packages.parents[1], sdk / "typescript"
    stated = json.loads((package / "package.json").read_text())
    assert [stated["author"], stated["repository"], stated["license"]] == [*SETTINGS.values()]
    run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=package)
    run("npm", "pack", "--silent", package, folder=folder)
    [packed] = folder.glob("linkmgr-client-*.tgz")
    (folder / "use").mkdir()
    run("npm", "install", "--silent", "--no-audit", "--no-fund", packed, folder=folder / "use")
    code, arguments = example(
        package,
        "declare const process: { argv: string[] };\nconst [, , headers, body] = process.argv;\n"
        "for (const text of [body, `${body} `]) receive(JSON.parse(headers), text).then(console.log);",
    )
    (folder / "use" / "use.ts").write_text(code)
    run(COMPILER, "--strict", "--target", "es2022", "--module", "commonjs", "use.ts", folder=folder / "use")
    seen(run("node", "use.js", *arguments, folder=folder / "use"), base)
