"""Classes of resources promise only what they keep."""

from linkmgr.fields.bodies import New
from linkmgr.resources.plans import Plan
from linkmgr.resources.resource import Resource
from linkmgr.resources.urls import Link
from linkmgr.resources.users import User


def test_bodies_have_the_members_that_can_be_sent_and_no_bodies_of_their_own() -> None:
    for body in (Link.creates(), Link.updates()):
        assert issubclass(body, New)
        assert not issubclass(body, Resource)
        assert not {"creates", "updates", "shown", "record"} & {*dir(body)}
        assert not {"id", "shorturl", "clicks"} & body().fields.keys()
    assert "username" in User.creates()().fields
    assert "username" not in User.updates()().fields


def test_resources_have_members_and_no_rows() -> None:
    for resource in (Link, Plan, User):
        assert not {"index", "read", "create", "change", "delete", "noun", "path", "table"} & {*dir(resource)}
