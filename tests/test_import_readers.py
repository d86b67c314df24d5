"""Import files of other services, made by hand from their documentation: tests/import_files."""

from pathlib import Path
from typing import Any

import pytest

from linkmgr.features.imports import files
from linkmgr.features.imports.rows import RawVisit
from tests.support.reading import END, SALE, only, problem, read, titles

FILES = Path(__file__).parent / "import_files"
JOBS = "https://example.com/jobs"
SUMMER = {"url": SALE, "custom": "summer", "title": "Summer sale"}
AT, NEXT_DAY = "2026-02-04 12:04:57", "2026-02-05 00:00:00"


def link(record: dict[str, Any], *tags: str, created: str | None = None, clicks: int | None = None) -> tuple[Any, ...]:
    return record, list(tags), created, clicks


DEFAULT_JOBS = link({"url": JOBS, "custom": "jobs"}, created=NEXT_DAY, clicks=0)
EXPECTED = {
    "shlink.csv": (
        "shlink",
        link({**SUMMER, "url": f"{SALE}?utm_source=mail", "domain": "s.example.org", "title": "Summer, sale"},
             "news", "mail"),
        link({"url": JOBS, "custom": "jobs"}),
    ),
    "shlink_web_client.csv": (
        "shlink",
        link(SUMMER | {"domain": "s.example.org"}, "news", "mail", created=AT, clicks=17),
        link({"url": JOBS, "custom": "jobs", "domain": "s.example.org"}, created=NEXT_DAY, clicks=0),
    ),
    "shlink.json": (
        "shlink",
        link(SUMMER | {"expiry": END, "maxclicks": 100, "forwardquery": True}, "news", "mail", created=AT, clicks=17),
        link({"url": JOBS, "custom": "jobs", "domain": "go.example.org"}, created=NEXT_DAY, clicks=0),
    ),
    "bitly.csv": (
        "bitly",
        link({"url": SALE, "custom": "Summer", "title": 'Summer "sale"', "domain": "go.example.org"},
             created="2026-06-01 08:30:00", clicks=1234),
        link({"url": SALE, "custom": "3AbCdEf", "title": 'Summer "sale"', "domain": "bit.ly"},
             created="2026-06-01 08:30:00"),
        link({"url": JOBS, "custom": "3XyZ123", "domain": "bit.ly"}, created="2026-06-02 00:00:00", clicks=0),
    ),
    "bitly.json": (
        "bitly",
        link(SUMMER | {"custom": "Summer", "domain": "go.example.org"}, "news", created="2026-06-01 08:30:00"),
        link(SUMMER | {"custom": "3AbCdEf", "domain": "bit.ly"}, "news", created="2026-06-01 08:30:00"),
    ),
    "dub.csv": (
        "dub",
        link({"url": SALE, "custom": "summer", "domain": "dub.sh"}, "news", "mail", created=AT, clicks=17),
        link({"url": JOBS, "custom": "jobs", "domain": "go.example.org"}, created=NEXT_DAY, clicks=0),
    ),
    "dub_columns.csv": (
        "dub",
        link({"url": SALE, "custom": "summer", "domain": "dub.sh"}, "news", "mail", created=AT, clicks=17),
    ),
    "dub.json": (
        "dub",
        link({"url": SALE, "custom": "summer", "domain": "dub.sh", "description": "For the newsletter",
              "password": "correct horse", "expiry": END}, "news", created=AT, clicks=17),
    ),
    "rebrandly.csv": ("rebrandly", link(SUMMER | {"domain": "rebrand.ly"}, "news", "mail", created=AT, clicks=17)),
    "shortio.csv": (
        "shortio",
        link(SUMMER | {"expiry": END, "domain": "s.example.org"}, "news", "mail", created=AT, clicks=245),
        link({"url": JOBS, "custom": "jobs", "domain": "s.example.org"}, created=NEXT_DAY, clicks=0),
    ),
    "shortio_members.csv": (
        "shortio",
        link(SUMMER | {"domain": "s.example.org"}, "news", "mail", created=AT, clicks=245),
    ),
    "yourls.csv": ("yourls", link(SUMMER, created=AT, clicks=17)),
    "yourls_plugin.csv": (
        "yourls",
        link({"url": SALE, "custom": "summer"}, clicks=17),
        link({"url": f"{JOBS}?a=1,2", "custom": "jobs"}, clicks=0),
    ),
    "yourls_phpmyadmin.sql": ("yourls", link(SUMMER, created=AT, clicks=17), DEFAULT_JOBS),
    "linkmgr.json": (
        "linkmgr",
        link(
            {"url": SALE, "alias": "summer", "metatitle": "Summer sale", "domain": "http://127.0.0.1:5000",
             "type": "direct", "status": "public"},
            "news, mail",
            created=AT,
            clicks=17,
        ),
    ),
    "linkmgr.jsonl": (
        "linkmgr",
        link({**SUMMER, "domain": "https://go.example.org", "description": "For the newsletter", "expiry": END,
              "type": "direct", "status": "private",
              "geotarget": [{"location": "Germany", "link": "https://example.de/sale"}]},
             "news, mail", created=AT, clicks=17),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_an_export_is_recognized_and_read(name: str) -> None:
    source, *links = EXPECTED[name]
    content = (FILES / name).read_bytes()
    recognized = files.recognize(content).source
    assert recognized
    assert recognized.name == source
    rows = read(content)
    assert [(row.members, row.tags, row.created, row.clicks) for row in rows] == links
    assert [(row.number, row.problem, row.visits) for row in rows] == [(n + 1, None, []) for n in range(len(links))]


def test_a_dump_of_yourls_has_links_and_visits() -> None:
    rows = sorted(read((FILES / "yourls.sql").read_bytes()), key=lambda row: row.is_visits)
    assert [(row.members, row.created, row.clicks) for row in rows[:3]] == [
        ({"url": SALE, "custom": "summer", "title": 'It\'s "Summer"; (sale), café\\'}, AT, 17),
        ({"url": JOBS, "custom": "jobs"}, NEXT_DAY, 0),
        ({"url": "https://example.com/blog", "custom": "blog", "title": "Blog"}, "2026-02-06 00:00:00", 3),
    ]
    linux, iphone = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", 'Mozilla/5.0 (iPhone; "x")'
    assert [(row.members, row.visits, row.is_visits) for row in rows[3:]] == [
        ({"custom": "summer"}, [RawVisit("2026-02-05 10:00:00", "", linux, "DE")], True),
        ({"custom": "summer"}, [RawVisit("2026-02-06 11:00:00", "https://news.example.net/?q=it's", iphone, "")], True),
    ]
    assert sorted(row.number for row in rows) == [1, 2, 3, 4, 5]


def test_a_password_that_the_source_keeps_secret_is_a_problem() -> None:
    open_link, secret = read((FILES / "kutt.json").read_bytes())
    assert open_link.members == {
        "url": SALE, "custom": "summer", "domain": "s.example.org", "description": "Summer sale", "expiry": END,
    }  # fmt: skip
    assert (open_link.created, open_link.clicks) == (AT, 17)
    assert secret.problem == (
        "Row 2 has a password, which the source keeps secret. Fill in 'password', or leave the row out."
    )
    assert secret.raw["target"] == "https://example.com/secret"
    mended = only(b"address,target,password\nsecret,https://example.com/secret,correct horse\n")
    assert mended.members["password"] == "correct horse"


@pytest.mark.parametrize("mark", ["$2a$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW", "true"])
def test_the_hash_of_a_password_is_not_a_password(mark: str) -> None:
    row = only(f"target,address,password\n{SALE},secret,{mark}\n".encode())
    assert (row.problem or "").startswith("Row 1 has a password, which the source keeps secret.")


@pytest.mark.parametrize(
    ("password", "stored"),
    [
        ("1234", "1234"),
        ('"12"', "12"),
        ('"0"', "0"),
        ('"1"', "1"),
        ("1", None),
        ("true", None),
        ('["x"]', "x"),
        ("0", ""),
    ],
)
def test_a_password_of_any_type_is_kept_or_a_problem(password: str, stored: str | None) -> None:
    row = only(f'[{{"address": "secret", "target": "{SALE}", "password": {password}}}]'.encode())
    assert bool(row.problem) == (stored is None)
    assert row.members.get("password", "") == (stored or "")


@pytest.mark.parametrize("password", ["0", "1", "00"])
def test_a_digit_in_a_csv_is_a_password(password: str) -> None:
    assert only(f"target,address,password\n{SALE},secret,{password}\n".encode()).members["password"] == password


def test_links_that_the_source_has_banned_are_problems() -> None:
    rows = read(f"target,address,banned\n{SALE},live,false\n{SALE},bad,true\n{SALE},worse,t\n".encode())
    assert [(row.problem or "").partition(" at the source")[0] for row in rows] == [
        "", "Row 2 is banned", "Row 3 is banned"
    ]  # fmt: skip


def test_later_records_of_json_may_have_more_columns() -> None:
    content = b'{"goes_to": "https://example.com/1"}\n{"goes_to": "https://example.com/2", "called": "second"}'
    assert files.recognize(content).columns == ["goes_to", "called"]


def test_our_own_csv_is_read_as_it_was_before_formulas_were_neutralized() -> None:
    content = (FILES / "linkmgr.csv").read_bytes()
    recognized = files.recognize(content).source
    assert recognized
    assert recognized.name == "linkmgr"
    row, secret = read(content)
    assert row.members == {
        "url": SALE, "custom": "-summer", "domain": "go.example.org", "title": "=Summer, sale", "expiry": END,
        "description": "For the newsletter", "status": "private", "type": "direct",
        "geotarget": [{"location": "germany", "link": "https://example.de/sale"}],
        "parameters": [{"name": "ref", "value": "1"}],
    }  # fmt: skip
    assert (row.tags, row.created, row.clicks) == (["news, mail", "jobs"], AT, 17)
    assert (secret.problem or "").startswith("Row 2 has a password, which the source keeps secret.")


def test_a_file_without_the_columns_of_its_source_is_refused() -> None:
    content = (FILES / "other.csv").read_bytes()
    columns = "'Where to', 'Name of it', 'Since'"
    assert problem(content, source="bitly") == f"This is not an export of bitly. Its columns are: {columns}."


def test_usual_names_of_columns_are_suggested() -> None:
    recognized = files.recognize(b"Target;Slug;Labels\nhttps://example.com;summer;news\n")
    assert recognized.source is None
    assert recognized.mapping == {"url": "Target", "custom": "Slug", "tags": "Labels"}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_of_mysql_batch_has_no_quoting(newline: str) -> None:
    content = (FILES / "mysql_batch_quotes.tsv").read_text().replace("\n", newline).encode()
    assert titles(content) == ['"Unclosed', "plain", 'ends with "']
    assert titles(content[: content.index(b"mc4")]) == ['"Unclosed']


def test_backslashes_of_mysql_batch_are_read_as_what_they_stand_for() -> None:
    texts = [rb"C:\\new", rb"two\nlines", rb"a\ttab", rb"open \"mark", rb"\N", rb"\x"]
    content = b"keyword\turl\ttitle\tclicks\n" + b"".join(
        b"a\thttps://example.com\t" + text + b"\t1\n" for text in texts
    )
    assert titles(content) == [r"C:\new", "two\nlines", "a\ttab", r"open \"mark", None, r"\x"]


def test_a_tab_separated_file_of_a_spreadsheet_is_quoted() -> None:
    rows = [
        b'a\thttps://example.com\t"Big ""sale"""\t1', b'b\thttps://example.com\t"two\nlines"\t2',
        b'c\thttps://example.com\t"a\ttab"\t3', b'd\thttps://example.com\t"Big" sale\t4',
    ]  # fmt: skip
    content = b"\n".join([b"keyword\turl\ttitle\tclicks", *rows, b""])
    assert titles(content) == ['Big "sale"', "two\nlines", "a\ttab", '"Big" sale']
    last = b'keyword\tclicks\turl\ttitle\na\t1\thttps://example.com\t"two\nlines"\nb\t2\thttps://example.com\tc\n'
    assert titles(last) == ["two\nlines", "c"]


def test_each_short_url_of_bitly_becomes_a_link() -> None:
    rows = read((FILES / "bitly_backhalves_and_deleted.json").read_bytes())
    names = [(row.number, row.members.get("domain"), row.members.get("custom")) for row in rows]
    assert names == [(1, "go.example.org", "SummerB"), (2, "go.example.org", "SummerB2"),
                     (3, "go.example.org", "3AbCdEf"), (4, None, None)]  # fmt: skip
    assert {row.members["url"] for row in rows[:3]} == {"https://example.com/bitly2"}
    assert (rows[3].problem or "").startswith("Row 4 is deleted")
    reported = [{row.raw[name] for name in ("id", "link", "custom_bitlinks")} for row in rows[:3]]
    assert reported == [{f"https://go.example.org/{alias}"} for alias in ("SummerB", "SummerB2", "3AbCdEf")]
