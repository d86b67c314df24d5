"""A list reads only the caller's rows, however many rows other users have, and by cursor only those that it returns."""

import psycopg2
import pytest

from tests.conftest import Client
from tests.support.explain import rows_read

# A path, its table, and the columns of n rows besides their owner.
LISTS = {
    "/api/pixels": ("pixels", {"type": "'bing'", "name": "'n'", "tag": "'t'"}),
    "/api/urls": ("links", {"alias": "%(user_id)s::bigint || '-' || n", "url": "'https://example.org/' || n"}),
}


@pytest.mark.parametrize("path", LISTS)
def test_a_list_reads_no_rows_of_other_users_and_by_cursor_none_that_it_skips(
    alice: Client, bob: Client, dsn: str, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    table, columns = LISTS[path]
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        for owner, rows in ((alice, 3), (bob, 20_000)):
            cursor.execute(
                f"INSERT INTO {table} (user_id, {', '.join(columns)}) "
                f"SELECT %(user_id)s, {', '.join(columns.values())} FROM generate_series(1, %(n)s) n",
                {"user_id": owner.id, "n": rows},
            )
        cursor.execute(f"ANALYZE {table}")
        cursor.execute(f"SELECT id FROM {table} WHERE user_id = %s ORDER BY id OFFSET 10000 LIMIT 1", [bob.id])
        [(middle,)] = cursor.fetchall()
    connection.close()

    def read() -> None:
        assert alice.get(path).get_json()["data"]["result"] == 3

    def read_middle() -> None:
        assert bob.get(f"{path}?after={middle}").get_json()["data"]["result"] == 20_000

    assert max(rows_read(monkeypatch, dsn, read)) < 100
    assert max(rows_read(monkeypatch, dsn, read_middle)) < 100
