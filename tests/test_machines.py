"""Two services with separate data folders behind nginx, pgbouncer, a replica and Redis, all of them real."""

import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from flask import Flask

from tests.conftest import BASE_URL, Client
from tests.support import machines, nginx
from tests.support.clusters import ask
from tests.support.factories import Sql
from tests.support.machines import Replica
from tests.support.nginx import Nginx
from tests.support.operations import KEYED, Call
from tests.support.races import at_once, meanwhile
from tests.support.servers import free_port, redis, serving
from tests.support.stage import Stage
from tests.support.targets import wait_until

pytestmark = pytest.mark.services


class Site(NamedTuple):
    front: Nginx
    standby: Replica
    counters: "subprocess.Popen[bytes]"

    def client(self, caller: Client) -> Client:
        """Return the same client, connected through nginx."""
        return Client(self.front, caller.key, caller.id, caller.username)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def site(app: Flask, dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("machines")
    with ExitStack() as stack:
        through = stack.enter_context(machines.pooler(dsn, folder))
        standby = stack.enter_context(machines.replica(dsn))
        storage, counters = stack.enter_context(redis(folder))
        ports = [free_port(), free_port()]
        for port in ports:
            server = serving(
                port,
                folder / f"{port}.log",
                "--workers=1",
                database_url=through,
                prepare="0",
                replica_url=standby.dsn,
                rate_limit_storage=storage,
                data_dir=str(folder / str(port)),
                secret_key=app.config["SECRET_KEY"],
                base_url=BASE_URL,
                domain_check="off",
                trusted_proxies="1",
            )
            stack.enter_context(server)
        front = stack.enter_context(nginx.running(folder / "nginx", *ports))
        yield Site(front, standby, counters)


def order(call: Call) -> tuple[bool, ...]:
    """Rows are deleted last, so that all calls find them, conversions before their link, and the user after all."""
    is_delete = (call.method == "DELETE" and "/assign/" not in call.path) or "/delete" in call.path
    return is_delete, "/user" in call.path, "bulk" in call.path, call.rows != ["conversion"]


def test_the_contract_holds_over_several_machines(
    site: Site, alice: Client, bob: Client, admin: Client, sql: Sql
) -> None:
    changed, added = Stage(alice, admin, sql), Stage(bob, admin, sql)  # the names of the examples are unique
    site.standby.catch_up()
    for call in sorted(KEYED, key=order):
        stage = added if call.path.endswith("/add") else changed
        caller = site.client(stage.caller(call))
        sql("UPDATE users SET email = username || '@example.com'")  # two examples have the same one
        answer = caller.call(call.method, stage.path(call), stage.bodies(call)[0], **call.upload)
        assert answer.status_code == 200, call


def test_of_200_concurrent_requests_to_two_services_exactly_30_are_admitted(
    site: Site, register: Callable[..., Client]
) -> None:
    alice = site.client(register("alice", plan="Free"))
    assert Counter(at_once(200, lambda _: alice.get("/api/account").status_code, threads=40)) == {200: 30, 429: 170}


def readers(standby: Replica) -> int:
    return int(ask(standby.dsn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'linkmgr'") or 0)


def kill_the_replica(site: Site) -> None:
    machines.signal_all(site.standby.server, signal.SIGKILL)


def kill_redis(site: Site) -> None:
    site.counters.kill()


@pytest.mark.parametrize("kill", [kill_redis, kill_the_replica])
def test_the_loss_of_a_component_costs_no_request(
    site: Site, app: Flask, register: Callable[..., Client], kill: Callable[[Site], None]
) -> None:
    app.test_cli_runner().invoke(args=["plans", "add", "Fast", "--monthly=1", "--rate=1000000"])
    users = [register(name, plan="Fast") for name in ("alice", "bob")]
    added = {user.username: user.add("/api/qr/add", {"type": "text", "data": "Hello"}) for user in users}
    reading, writing = map(site.client, users)
    calls = [
        lambda: reading.get("/api/qr"),
        lambda: reading.get(f"/api/qr/{added['alice']}"),
        lambda: writing.post("/api/pixel/add", {"type": "bing", "name": "n", "tag": "t"}),
    ]
    wait_until(lambda: reading.get("/api/qr").status_code == 200 and readers(site.standby))
    with meanwhile(*calls) as answers:
        wait_until(lambda: len(answers) > 20)
        kill(site)
        before = len(answers)
        wait_until(lambda: len(answers) > before + 60)
    assert {answer.status_code for answer in answers} == {200}
    stored = sum(answer.request.method == "POST" for answer in answers)
    assert users[1].get("/api/pixels").get_json()["data"]["result"] == stored
