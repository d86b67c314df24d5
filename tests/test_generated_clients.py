"""Clients that generators make of the document, each used by a program in tests/clients/ against the running service.

All programs do the same: create links, one by one and in bulk, list them by cursor, look one up by its short URL, read
statistics, create a webhook and QR codes, get an image and a CSV, cause an error, read a link, delete it, upload a file
of links, and read its failed rows as JSON and as CSV. Each prints what it saw."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import openapi_generator_cli
import pytest

from tests.conftest import MANY, Client
from tests.support.document import document
from tests.support.visited import Store, Visited

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
    for program, package in packages.items():
        if not (shutil.which(program) or Path(program).exists()):
            pytest.skip(f"{program} is missing: apt-get install {package}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the document."""
    (tmp_path / "openapi.json").write_text(json.dumps(document()))
    return tmp_path


@pytest.fixture
def base(serve: Callable[..., str], alice: Client, store: Store) -> str:
    """The URL of a service in which alice has a link with three clicks."""
    seeded = alice.add("/api/url/add", {"url": "https://example.com/seeded", "custom": "seeded"})
    store([Visited(seeded, datetime.now(UTC))] * 3)
    return serve("--workers", "1", rate_limit=MANY)


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
        }

    return check


def generate(language: str, folder: Path, *options: str) -> None:
    run(GENERATOR, "generate", "-i", "openapi.json", "-g", language, "-o", "generated", *options, folder=folder)


def compile_typescript(name: str, folder: Path) -> None:
    need(node="nodejs")
    shutil.copy(CLIENTS / f"{name}.ts", folder)
    run(COMPILER, *STRICT, f"{name}.ts", folder=folder)


@pytest.fixture
def packages(folder: Path) -> Path:
    """The programs of the npm packages, which are in the folder of the document."""
    if not COMPILER.exists():
        pytest.skip("the npm packages are missing: make clients")
    (folder / "node_modules").symlink_to(NODE_MODULES)
    return folder / "node_modules" / ".bin"


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_python(folder: Path, use: Use) -> None:
    generate("python", folder, "--package-name", "linkmgr_client")
    use(sys.executable, CLIENTS / "openapi_generator.py", folder=folder, PYTHONPATH="generated")


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_go(folder: Path, use: Use) -> None:
    need(go="golang-go")
    generate("go", folder, "--git-host", "example.com", "--git-user-id", "linkmgr", "--git-repo-id", "client")
    program = folder / "generated" / "program"
    program.mkdir()
    shutil.copy(CLIENTS / "openapi_generator.go", program)
    run("go", "build", "-o", folder, "./program", folder=folder / "generated")
    use(folder / "program", folder=folder)


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_php(folder: Path, use: Use) -> None:
    need(php="php-cli php-curl php-mbstring php-guzzlehttp-guzzle")
    generate("php", folder)
    use("php", CLIENTS / "openapi_generator.php", folder=folder / "generated")


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_ruby(folder: Path, use: Use) -> None:
    need(ruby="ruby ruby-typhoeus")
    generate("ruby", folder)
    use("ruby", "-Igenerated/lib", CLIENTS / "openapi_generator.rb", folder=folder)


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_java(folder: Path, use: Use) -> None:
    """The default library needs packages that Debian lacks, and the library `native` reads a CSV as JSON. The option
    leaves out another such package, which can send null."""
    packages = dict.fromkeys(map(str, JARS), "libhttpclient5-java libgeronimo-annotation-1.3-spec-java")
    need(javac="openjdk-17-jdk-headless", **packages)
    generate("java", folder, "--library", "apache-httpclient", "--additional-properties", "openApiNullable=false")
    path = os.pathsep.join(map(str, (folder, *JARS)))
    sources = "-sourcepath", "generated/src/main/java", CLIENTS / "OpenapiGenerator.java"
    run("javac", "-proc:none", "-encoding", "UTF-8", "-cp", path, "-d", folder, *sources, folder=folder)
    use("java", "-cp", path, "OpenapiGenerator", folder=folder)


@pytest.mark.clients
def test_openapi_generator_makes_a_client_for_typescript(folder: Path, packages: Path, use: Use) -> None:
    generate("typescript-fetch", folder)
    compile_typescript("openapi_generator", folder)
    use("node", "openapi_generator.js", folder=folder)


@pytest.mark.clients
def test_openapi_typescript_makes_types_for_openapi_fetch(folder: Path, packages: Path, use: Use) -> None:
    run(packages / "openapi-typescript", "openapi.json", "-o", "generated.d.ts", folder=folder)
    compile_typescript("openapi_fetch", folder)
    use("node", "openapi_fetch.js", folder=folder)


@pytest.mark.clients
def test_hey_api_makes_a_client(folder: Path, packages: Path, use: Use) -> None:
    run(packages / "openapi-ts", "-i", "openapi.json", "-o", "generated", folder=folder)
    compile_typescript("hey_api", folder)
    use("node", "hey_api.js", folder=folder)


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


@pytest.mark.clients
def test_a_client_of_the_model_context_protocol_uses_twelve_tools(base: str, alice: Client) -> None:
    if not MCP_PYTHON.exists():
        pytest.skip("fastmcp is missing: make clients")
    program = CLIENTS / "mcp_client.py"
    assert json.loads(run(MCP_PYTHON, program, base, alice.key or "", ROOT / "deploy", folder=CLIENTS)) == {
        "tools": 12,
        "is_small": True,
        "headers": [],
        "created": f"{base}/first",
        "updated": ["First", True],
        "clicks": 3,
        "code": True,
        "refused": True,
        "left": ["seeded"],
    }


@pytest.fixture(scope="module")
def sdk() -> Path:
    run("make", "sdk", folder=ROOT)
    return ROOT / "var" / "sdk"


def example(package: Path, base: str, key: str) -> str:
    """Return the code in the README of a package, for a service and a key."""
    [code] = re.findall(r"```\w+\n(.*?)```", (package / "README.md").read_text(), re.DOTALL)
    return str(code).replace("https://go.example.org", base).replace("your API key", key)


def seen(output: str, base: str) -> None:
    assert re.sub(r"\w{8}\b", "ALIAS", output, count=2).splitlines() == [
        f"{base}/ALIAS", f"{base}/ALIAS 0", f"{base}/seeded 3", "missing There is no link with this id."
    ]  # fmt: skip


@pytest.mark.clients
def test_the_package_for_python_is_installed_and_used(sdk: Path, tmp_path: Path, base: str, alice: Client) -> None:
    run(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", sdk / "python", folder=tmp_path)
    seen(run(python, "-c", example(sdk / "python", base, alice.key or ""), folder=tmp_path), base)


@pytest.mark.clients
def test_the_package_of_npm_is_installed_and_used(sdk: Path, packages: Path, base: str, alice: Client) -> None:
    need(node="nodejs", npm="npm")
    folder, package = packages.parents[1], sdk / "typescript"
    run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=package)
    run("npm", "pack", "--silent", package, folder=folder)
    [packed] = folder.glob("linkmgr-client-*.tgz")
    (folder / "use").mkdir()
    run("npm", "install", "--silent", "--no-audit", "--no-fund", packed, folder=folder / "use")
    (folder / "use" / "use.ts").write_text(example(package, base, alice.key or ""))
    run(COMPILER, "--strict", "--target", "es2022", "--module", "commonjs", "use.ts", folder=folder / "use")
    seen(run("node", "use.js", folder=folder / "use"), base)
