"""Classes of resources promise only what they keep."""

from linkmgr.resources.account import Account
from linkmgr.resources.plans import Plan
from linkmgr.resources.resource import Resource, Stored
from linkmgr.resources.stored import STORED
from linkmgr.resources.urls import Link
from linkmgr.resources.users import User


def test_only_resources_with_rows_of_their_own_have_the_methods_of_rows() -> None:
    methods = {name for name, value in vars(Stored).items() if isinstance(value, classmethod)}
    assert {"index", "read", "create", "change", "delete", "batch"} <= methods
    assert not methods & {*dir(Resource), *dir(Account), *dir(User)}
    assert methods & {*dir(Plan)} == {"read", "create", "change"}
    assert "index" not in dir(Link)


def test_the_module_of_a_word_has_the_statements_of_its_rows() -> None:
    for kind in STORED:
        assert kind.rows.__name__.startswith("linkmgr.repository."), kind  # type: ignore[attr-defined]
