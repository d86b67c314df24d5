"""`updated` is the time of the last change of a row. Visits do not change it."""

from tests.support import pages
from tests.support.factories import Sql
from tests.support.operations import KEYED
from tests.support.stage import Stage
from tests.support.visited import Store

UPDATES = [call for call in KEYED if call.path.endswith("/update") and "/default/" not in call.path]


def test_each_change_of_a_row_renews_its_time(stage: Stage, sql: Sql) -> None:
    assert len(UPDATES) > 10
    for call in sorted(UPDATES, key=lambda call: call.operation.scope == "admin"):
        row_id = stage.ids[call.rows[0]] if call.rows else stage.alice.id

        def updated(table: str = call.operation.row, row_id: int = row_id) -> list[str]:
            statement = f"SELECT updated::text AS exact, updated FROM {table} WHERE id = %(id)s"
            return [*sql(statement, id=row_id)[0].values()]

        before = updated()
        answer = stage.caller(call).put(stage.path(call), stage.bodies(call)[-1 if call.rows else 0])
        assert answer.status_code == 200, call
        assert updated()[0] > before[0], call
        record = answer.get_json()["record"]
        assert record.get("updated", updated()[1]) == updated()[1], call
        assert "updated" in record or call.operation.is_for_administrators, call


def test_visits_and_an_update_with_the_stored_values_change_no_row(stage: Stage, sql: Sql, store: Store) -> None:
    def updated() -> list[str]:
        return [
            row["at"]
            for row in sql("SELECT updated::text AS at FROM links UNION ALL SELECT updated::text FROM api_keys")
        ]

    before, path = updated(), f"/api/url/{stage.ids['link']}"
    store([pages.visit(stage.ids["link"])])
    record = stage.alice.get(path).get_json()["record"]
    answer = stage.alice.put(f"{path}/update", record | {"updated": "2020-01-01 00:00:00"}).get_json()
    assert (answer["record"], answer.get("warnings")) == (record, None)
    assert updated() == before
