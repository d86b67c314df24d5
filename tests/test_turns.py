"""One thread works, and another steps in when it is held up (linkmgr/turns.py)."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from math import inf
from typing import Any

import pytest

from linkmgr import turns
from linkmgr.turns import PATIENCE, Pool, at_once
from tests.targets import wait_until


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(3)
    yield made
    made.shutdown(wait=False)


def who(_: object) -> int:
    return threading.get_ident()


class Held:
    """A job that is held up until it is let go."""

    def __init__(self, pool: Pool) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.future: Future[Any] = pool.submit(self, None)
        self.pool = pool

    def __call__(self, _: object) -> int:
        self.begun.set()
        self.let_go.wait()
        return threading.get_ident()

    def end(self) -> int:
        self.let_go.set()
        return int(self.future.result())


def relieved(pool: Pool, done: Callable[[], bool]) -> None:
    """What the worker does until then."""

    def look() -> bool:
        pool.relieve()
        return done()

    wait_until(look)


def test_one_thread_does_all_that_is_quick(pool: Pool) -> None:
    jobs = [pool.submit(who, None) for _ in range(100)]
    assert len({job.result() for job in jobs}) == 1


def test_another_thread_steps_in_for_one_that_is_held_up(pool: Pool) -> None:
    held = Held(pool)
    held.begun.wait()
    behind = pool.submit(who, None)
    relieved(pool, behind.done)
    others = {behind.result(), *(pool.submit(who, None).result() for _ in range(10))}
    assert held.end() not in others
    assert len(others) == 1
    assert {pool.submit(who, None).result() for _ in range(10)} == others, "who was held up rests now"


def test_a_thread_that_is_idle_is_not_relieved(pool: Pool) -> None:
    only = pool.submit(who, None).result()
    assert pool.patience() == inf
    for _ in range(100):
        job = pool.submit(who, None)
        pool.relieve()
        assert job.result() == only


def test_nothing_is_done_for_those_who_wait_when_all_threads_are_held_up(pool: Pool) -> None:
    held = []
    for _ in range(3):
        held.append(Held(pool))
        relieved(pool, held[-1].begun.is_set)
    waits = pool.submit(who, None)
    relieved(pool, lambda: pool._latest.over)
    pool.relieve()
    assert pool.patience() == PATIENCE, "the worker would ask again and again"
    assert not waits.done()
    ended = held[0].end()
    assert waits.result() == ended
    for each in held[1:]:
        each.end()


class Together:
    """Jobs that let others go first: what happened, in its order."""

    def __init__(self, pool: Pool) -> None:
        self.pool, self.told = pool, list[str]()

    def submit(self, name: str) -> Future[Any]:
        return self.pool.submit(self, name)

    def __call__(self, name: str) -> None:
        self.told.append(f"{name} begins")
        if turns.others():
            turns.together(lambda: self.told.append(f"{name} finishes"))


@pytest.fixture
def endless_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 60)


@pytest.mark.usefixtures("endless_patience")
def test_those_who_let_others_go_first_finish_when_nobody_waits_any_more(pool: Pool) -> None:
    held, jobs = Held(pool), Together(pool)
    held.begun.wait()
    submitted = [jobs.submit("one"), jobs.submit("two"), pool.submit(who, None), jobs.submit("three")]
    held.end()
    for each in submitted:
        each.result(10)
    assert jobs.told[:4] == ["one begins", "two begins", "three begins", "three finishes"]
    assert sorted(jobs.told[4:]) == ["one finishes", "two finishes"]


@pytest.mark.usefixtures("endless_patience")
def test_who_rests_goes_on_when_the_last_of_those_that_waited_does_not_rest(pool: Pool) -> None:
    held, jobs = Held(pool), Together(pool)
    held.begun.wait()
    submitted = [jobs.submit("one"), jobs.submit("two"), pool.submit(who, None)]
    held.end()
    for each in submitted:
        each.result(10)
    assert sorted(jobs.told[2:]) == ["one finishes", "two finishes"]


@pytest.mark.usefixtures("endless_patience")
def test_nobody_rests_when_no_thread_is_left_for_those_who_wait(pool: Pool) -> None:
    held, jobs = Held(pool), Together(pool)
    held.begun.wait()
    submitted = [jobs.submit(str(number)) for number in range(50)]
    held.end()
    for each in submitted:
        each.result(10)
    assert jobs.told.count("49 begins") == 1


def test_nobody_rests_for_long_behind_a_slow_one(pool: Pool) -> None:
    held, jobs = Held(pool), Together(pool)
    held.begun.wait()
    resting, slow = jobs.submit("one"), Held(pool)
    held.end()
    slow.begun.wait()
    resting.result()
    assert jobs.told == ["one begins", "one finishes"]
    assert not pool.resting
    slow.end()


def test_who_was_relieved_has_no_turn_to_give_away(pool: Pool) -> None:
    jobs = Together(pool)
    let_go, over = threading.Event(), threading.Event()

    def slow(name: str) -> None:
        let_go.wait()
        jobs(name)
        over.set()

    pool.submit(slow, "one")
    held = Held(pool)
    relieved(pool, held.begun.is_set)
    waits = Held(pool)
    let_go.set()
    over.wait()
    assert jobs.told == ["one begins", "one finishes"]
    assert not waits.begun.is_set()
    held.end()
    waits.end()


@pytest.mark.parametrize(("threads", "at_once"), [(1, 1), (3, 3)])
def test_nobody_lets_others_go_first_where_no_thread_waits_for_a_turn(threads: int, at_once: int) -> None:
    pool = Pool(threads, at_once)
    held = [Held(pool) for _ in range(threads)]
    for each in held:
        each.begun.wait()
    asking = [pool.submit(lambda _: turns.others(), None) for _ in range(10)]
    for each in held:
        each.end()
    assert not any(each.result() for each in asking)
    pool.shutdown(wait=False)


def test_who_fails_to_finish_holds_up_nobody(pool: Pool) -> None:
    def finish() -> None:
        raise ZeroDivisionError

    def fail(_: object) -> None:
        turns.together(finish)

    held = Held(pool)
    held.begun.wait()
    submitted = [pool.submit(fail, None) for _ in range(3)]
    held.end()
    assert [type(each.exception()) for each in submitted] == [ZeroDivisionError] * 3


def test_there_are_no_others_where_nobody_takes_turns() -> None:
    assert not turns.others()


def test_all_threads_work_at_a_time_when_they_wait_for_another_machine() -> None:
    pool = Pool(3, at_once=3)
    held = [Held(pool) for _ in range(3)]
    for each in held:
        each.begun.wait()
    assert len({each.end() for each in held}) == 3
    pool.shutdown(wait=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", 1),
        ("postgresql:///linkmgr", 1),
        ("postgresql://me@/linkmgr?host=/run/postgresql", 1),
        ("postgresql://me@localhost/linkmgr", 1),
        ("host=127.0.0.1 dbname=linkmgr", 1),
        ("postgresql://me@[::1]:5433/linkmgr", 1),
        ("postgresql://me@localhost,127.0.0.1/linkmgr", 1),
        ("host=@abstract dbname=linkmgr", 1),
        ("postgresql://me@db.example.com/linkmgr", 4),
        ("postgresql://me@localhost/linkmgr?hostaddr=192.0.2.1", 4),
        ("service=production", 4),
        ("postgresql://me:secret@[::1/linkmgr", 4),
        ("postgresql://me@one.example.com,two.example.com/linkmgr", 4),
    ],
)
def test_where_the_database_is_decides_how_many_work_at_a_time(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: int
) -> None:
    monkeypatch.setenv("LINKMGR_DATABASE_URL", url)
    assert at_once(4) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("LINKMGR_PREPARE", "0"), ("PGHOST", "db.example.com"), ("PGHOSTADDR", "192.0.2.1"), ("PGSERVICE", "production")],
)
def test_a_pooler_or_the_environment_may_lead_to_another_machine(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("LINKMGR_DATABASE_URL", "postgresql:///linkmgr")
    monkeypatch.setenv(name, value)
    assert at_once(4) == 4
    monkeypatch.delenv("LINKMGR_DATABASE_URL")
    assert at_once(4) == 1, "a server of its own"


def test_a_burst_of_slow_jobs_holds_up_nobody_behind_it(pool: Pool) -> None:
    held = [Held(pool) for _ in range(2)]
    behind = pool.submit(who, None)
    while not behind.done():
        wait = pool.patience()
        assert wait < inf or pool._jobs.empty(), "the worker would sleep"
        time.sleep(max(0, min(wait, 0.001)))
        pool.relieve()
    assert {each.end() for each in held}.isdisjoint({behind.result()})


def test_what_a_job_raises_is_its_result(pool: Pool) -> None:
    def fail(_: object) -> None:
        raise SystemExit(3)

    assert isinstance(pool.submit(fail, None).exception(), SystemExit)
    assert pool.submit(who, None).result()


def test_no_thread_is_left_after_the_jobs_that_were_submitted(pool: Pool) -> None:
    before = set(threading.enumerate())
    other = Pool(3)
    mine = set(threading.enumerate()) - before
    assert len(mine) == 3
    jobs = [other.submit(who, None) for _ in range(10)]
    other.shutdown(wait=False)
    for thread in mine:
        thread.join()
    assert all(job.done() for job in jobs)
