"""Bounds of an import while it runs: rows that wait in the database, and memory."""

import base64
import gzip
import io
import secrets
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest

from linkmgr.features.imports import failed_rows as import_rows
from linkmgr.features.imports import job
from linkmgr.features.imports.account import reading
from linkmgr.features.imports.rows import ReadError
from tests.conftest import BASE_URL, Client
from tests.support.archives import archive
from tests.support.factories import Sql
from tests.support.imported import AGENT, Import, counts, import_of, sale, send, shlink
from tests.support.servers import resident, started

BOUND = 30_000  # bytes
URLS = "INSERT INTO yourls_url VALUES "
LOG = "INSERT INTO yourls_log VALUES "
WAITING = """
    SELECT coalesce(sum(octet_length(content)), 0)::int AS bytes FROM import_rows WHERE place >= 0
"""
TAKE_LINKS = """
    WITH taken AS (DELETE FROM links RETURNING alias, url) SELECT * FROM taken ORDER BY alias
"""
SIZE = "SELECT pg_total_relation_size('import_rows') AS bytes"


@pytest.fixture
def small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MAX_STAGED", BOUND)
    monkeypatch.setattr(job, "MAX_READ", 20)
    monkeypatch.setattr(job, "MAX_ROWS", 20)


def dump(links: int, visits: int) -> bytes:
    """Return a dump whose visits come before their links, as phpMyAdmin writes them."""
    log = [f"({n},'2024-02-01','a{n % links}','','{AGENT}','192.0.2.1','DE')" for n in range(visits)]
    urls = [f"('a{n}','https://example.com/{n}','','2024-01-31','',{visits})" for n in range(links)]
    return f"{LOG}{','.join(log)};\n{URLS}{','.join(urls)};\n".encode()


@pytest.mark.usefixtures("small_bound")
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_file_whose_rows_are_more_than_may_wait_is_read_and_stored_in_turns(
    alice: Client, one_batch: Callable[[], bool], sql: Sql, *, is_killed: bool
) -> None:
    import_id = send(alice, dump(300, 900)).get_json()["id"]
    waiting, percents = [0], [0]
    while one_batch():
        waiting.append(sql(WAITING)[0]["bytes"])
        percents.append(import_of(alice, import_id)["percent"])
        if is_killed and len(waiting) % 10 == 0:  # the next one reads from the beginning of the file
            job._local.readings.clear()
    assert BOUND / 2 < max(waiting) < 2 * BOUND
    assert percents[-1] == 100
    assert max(percents[:-1]) <= 100
    found = import_of(alice, import_id)
    assert (*counts(found), found["visits"]) == ("done", 1200, 300, 0, 0, 0, 900)
    links = alice.get("/api/urls?limit=1000").get_json()["data"]["urls"]
    assert {link["clicks"] for link in links} == {3}
    assert sql("SELECT FROM import_rows") == []


def test_links_of_our_host_get_their_aliases_before_those_of_others(
    alice: Client, run_import: Import, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = BASE_URL.removeprefix("http://")
    foreign = [sale(f"row-{n}", f"https://example.com/{n}") for n in range(60)]
    rows = [*foreign, *(row.replace("s.example.com", own).replace("com/", "org/") for row in foreign)]
    found = []
    for bound in (job.MAX_STAGED, BOUND // 3):
        monkeypatch.setattr(job, "MAX_STAGED", bound)
        monkeypatch.setattr(job, "MAX_READ", 7)
        assert counts(run_import(alice, shlink(*rows))) == ("done", 120, 60, 0, 0, 60)
        found.append(sql(TAKE_LINKS))
    assert found[0] == found[1]
    assert {link["url"] for link in found[0]} == {f"https://example.org/{n}" for n in range(60)}


@pytest.mark.usefixtures("small_bound")
def test_rows_that_others_may_refer_to_are_bounded(
    alice: Client, run_import: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_rows, "MAX_SKIPPED", 0)
    lines = [{"id": n, "name": "Same"} for n in range(200)]
    found = run_import(alice, archive(channels=lines))
    assert (found["state"], found["made"]) == ("failed", 1)
    assert found["message"].startswith("The file has more rows than an import can have.")


@pytest.mark.usefixtures("small_bound")
def test_rows_to_which_no_other_refers_are_not_kept(alice: Client, one_batch: Callable[[], bool], sql: Sql) -> None:
    import_id = send(alice, b"url\n" + b"https://example.com/same\n" * 500).get_json()["id"]
    numbers = []
    while one_batch():
        numbers.append(len(sql("SELECT FROM import_rows WHERE content IS NULL AND code IS NULL")))
    assert counts(import_of(alice, import_id)) == ("done", 500, 1, 0, 499, 0)
    assert max(numbers) == 1


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_unpacks_without_a_bound_is_refused(method: int) -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as file:
        file.writestr("manifest.json", "{}")
        file.writestr("links.jsonl", bytes(100 << 20), method)
        file.writestr("padding", secrets.token_bytes(1 << 20))
    output.seek(0)
    tracemalloc.start()
    try:
        with pytest.raises(ReadError, match=r"^links\.jsonl in this zip cannot be read"):
            list(reading.read(output))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


# --- a service


def table(text: str) -> bytes:
    """Return rows of 240 KB with a text that is packed well, as gzip."""
    output = io.BytesIO()
    with gzip.open(output, "wt", 6) as file:
        file.write("Long URL,Title,Note\n")
        for number in range(1500):
            salt = base64.b64encode(secrets.token_bytes(700)).decode()
            file.write(f"https://example.com/{number},One,{salt}{text}\n")
    return output.getvalue()


def lines() -> bytes:
    """Return the zip of an account with lines of nearly 2 MiB, most of it small arrays."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", "{}")
        with file.open("links.jsonl", "w") as links:
            for number in range(100):
                salt = base64.b64encode(secrets.token_bytes(6000)).decode()
                text = f'"x": "{salt}\U0001f600", "y": [{"[]," * 600_000}0]'
                links.write(f'{{"id": {number}, "url": "https://example.com/{number}", {text}}}\n'.encode())
    return output.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "ascii": lambda: table("x" * 50_000),
    "emoji": lambda: table("\U0001f600" * 50_000),
    "account": lines,
}


@pytest.fixture
def users(alice: Client, bob: Client, dsn: str) -> Iterator[tuple[Client, Client]]:
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE import_rows")  # gives the space of other tests back
    yield alice, bob
    for client in (alice, bob):
        for record in client.get("/api/imports").get_json()["data"]["imports"]:
            client.delete(f"/api/imports/{record['id']}")


@pytest.mark.slow
def test_six_imports_of_rows_that_are_packed_well_take_bounded_disk_and_memory(
    serve: Callable[..., str], users: tuple[Client, Client], sql: Sql
) -> None:
    files = [make() for make in FILES.values()]
    assert len(files) == 3
    for client in users:
        for file in files:
            assert send(client, file).status_code == 200
    _, worker = started(serve)
    end, memory, disk = time.monotonic() + 12, 0.0, 0
    while time.monotonic() < end:
        memory = max(memory, resident(worker))
        disk = max(disk, sql(SIZE)[0]["bytes"])
        time.sleep(0.1)
    assert memory < 300
    assert disk < len(users) * ((64 << 20) + 2 * sum(map(len, files)))
