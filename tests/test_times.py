"""The forms of times that the expiry of a link may have."""

import pytest

from linkmgr.core.fields.times import parse_time
from tests.support.refusals import Refusal, least, schemas


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2030-12-31 23:59:59", "2030-12-31 23:59:59"),
        ("2030-12-31", "2030-12-31 23:59:59"),
        ("2030-12-31T12:00", "2030-12-31 12:00:00"),
        ("2030-12-31T12:00:00Z", "2030-12-31 12:00:00"),
        ("2030-12-31t12:00:00z", "2030-12-31 12:00:00"),
        ("2030-12-31T23:30:00.123-01:00", "2031-01-01 00:30:00"),
        ("2030-12-31 12:00:00+0530", "2030-12-31 06:30:00"),
        ("2001-01-01 00:00:00", "2001-01-01 00:00:00"),
        ("2036/11/24", "2036-11-24 23:59:59"),
        # RFC 3339 with any fraction, and with the zone as PostgreSQL prints it
        ("2030-12-31T12:00:00.5Z", "2030-12-31 12:00:00"),
        ("2030-12-31T12:00:00.123456789012345+01:00", "2030-12-31 11:00:00"),
        ("2030-12-31 12:00:00.123456+02", "2030-12-31 10:00:00"),
        # Go and Java, with the region or the monotonic clock
        ("2026-11-21 21:02:20.015843052 +0000 UTC", "2026-11-21 21:02:20"),
        ("2026-11-21 21:02:20.015843052 +0100 CET m=+0.000012345", "2026-11-21 20:02:20"),
        ("2026-11-21 21:02:20 -0300 -03", "2026-11-22 00:02:20"),
        ("2026-11-21T21:02:20.015843052+01:00[Europe/Berlin]", "2026-11-21 20:02:20"),
        ("2026-11-21T21:02Z[UTC]", "2026-11-21 21:02:00"),
        # Ruby, Rust and Python's log
        ("2030-12-31 12:00:00 UTC", "2030-12-31 12:00:00"),
        ("2030-12-31 12:00:00 -0500", "2030-12-31 17:00:00"),
        ("2030-12-31 12:00:00,123", "2030-12-31 12:00:00"),
        # RFC 2822, HTTP and RFC 850 with four digits of the year
        ("Sat, 21 Nov 2026 21:02:20 +0000", "2026-11-21 21:02:20"),
        ("sat, 21 nov 2026 21:02:20 gmt", "2026-11-21 21:02:20"),
        ("1 Nov 2026 21:02 -0130", "2026-11-01 22:32:00"),
        ("Sat, 21 Nov 2026 22:02:20 +0100 (CET)", "2026-11-21 21:02:20"),
        ("Saturday, 21-Nov-2026 21:02:20 UTC", "2026-11-21 21:02:20"),
        # JavaScript, C, Java and Unix
        ("Sat Nov 21 2026 22:02:20 GMT+0100 (Central European Standard Time)", "2026-11-21 21:02:20"),
        ("Sun Nov  1 21:02:20 2026", "2026-11-01 21:02:20"),
        ("Sat Nov 21 21:02:20 UTC 2026", "2026-11-21 21:02:20"),
        ("Sat Nov 21 21:02:20 +0200 2026", "2026-11-21 19:02:20"),
    ],
)
def test_a_time_is_read_in_utc(sent: str, kept: str) -> None:
    assert parse_time(sent).replace(microsecond=0).isoformat(" ") == f"{kept}+00:00"


@pytest.mark.parametrize(
    "expiry",
    ["tomorrow", "2030-13-01", "2030-02-30", "2030-1-1", "2030-12-31 24:00:00", "20301231",
     "2030-12-31T12:00:00+99:00", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "2030-12-31\n",
     "٢٠٣٠-١٢-٣١",
     # Ambiguous or contradictory: the order of day and month, the century, the time zone, the day of the week
     "02/03/2030", "02-03-2030", "02.03.2030 12:00", "12:00", "1767225600", "Sat, 21 Nov 26 21:02:20 GMT",
     "2030-12-31 12:00:00 CST", "Sat Nov 21 21:02:20 CST 2026", "Mon, 21 Nov 2026 21:02:20 GMT",
     "31 Feb 2030 12:00 GMT",
     "2030-12-31T12:00:00Z+01:00", "2030-12-31T12:00:00+01:60", "2030-12-31 9:02 PM", "Sat Nov 21 UTC 21:02:20 2026",
     "Sat Nov 21 2026 21:02:20 2027", "Nov 2026", "2030-12-31T12:00:00.Z", "2030-12-31 12:00 m=+0.1", "now", " "],
)  # fmt: skip
def test_an_ambiguous_or_contradictory_time_is_refused(refusal: Refusal, expiry: str) -> None:
    for schema in schemas("url"):
        message = refusal(schema, least("url", schema) | {"expiry": expiry})
        assert message == "expiry must be a time such as 2030-12-31 23:59:59."
