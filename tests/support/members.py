"""Hypothesis strategies for the members of bodies, taken from their schemas.

A strategy gives pairs: the value that is sent, and the value that is read back. They differ where the service
normalizes. A field type without a strategy fails the tests, so that no new member escapes them.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import strategies as st
from marshmallow import Schema, fields

from linkmgr.core.fields import aliases, base, external, links
from linkmgr.core.fields.objects import Objects
from linkmgr.core.fields.qr import VcardData
from linkmgr.features.reports import schema as reports
from linkmgr.features.scoped_keys import schema as keys
from linkmgr.schemas import domains, plans, qr
from linkmgr.visits import rules, variants
from tests.conftest import BASE_URL
from tests.support.stage import LOGOS, Stage

Pairs = st.SearchStrategy[tuple[Any, Any]]

_numbers = count(1)
_letters = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])
_IDN = "https://bücher.example/ä?q=ö", "https://xn--bcher-kva.example/%C3%A4?q=%C3%B6"
URLS: Pairs = st.sampled_from(
    [
        _IDN,
        *((url, url) for url in ("https://example.com", "http://example.com:8080/a/?b=c&d=%20#e", "https://9.9.9.9/")),
    ]
)


def same(values: st.SearchStrategy[Any]) -> Pairs:
    return values.map(lambda value: (value, value))


def unique(form: str) -> Pairs:
    """Return values with a number that no other row has."""
    return same(st.builds(lambda: form.format(next(_numbers))))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(_letters, max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(_letters, max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _text(field: base.Text) -> Pairs:
    words = st.text(_letters, min_size=1, max_size=min(30, field.max_length)).filter(lambda text: text.strip() != "")
    if field.multiline:
        words = st.lists(words, min_size=1, max_size=3).map("\n".join)
    return same(words)


def _targets(field: links.Targets) -> Pairs:
    label = st.sampled_from(["Germany", "iPhone", "fr", "ÉTÉ"])

    def pair(urls: dict[str, tuple[str, str]]) -> tuple[Any, Any]:
        sent = [{field.selector: label, "link": url} for label, (url, _) in urls.items()]
        return sent, [{field.selector: label.lower(), "link": url} for label, (_, url) in urls.items()]

    return st.dictionaries(label, URLS, max_size=3).map(pair)


def _deep_link(stores: dict[str, tuple[str, str]]) -> tuple[Any, Any]:
    sent, read = ({store: url[index] for store, url in stores.items()} for index in (0, 1))
    return {"auto": True} | sent, {"auto": True} | read


def _links(items: list[tuple[tuple[str, str], tuple[str, str]]]) -> tuple[Any, Any]:
    sent, read = ([{"title": title[index], "url": url[index]} for title, url in items] for index in (0, 1))
    return sent, read


def _vcard(sent: dict[str, str]) -> tuple[Any, Any]:
    return sent, dict.fromkeys(VcardData().fields, "") | sent


_VARIANTS = [{"name": name, "url": f"https://example.com/{name}", "weight": n} for n, name in enumerate("ab", 1)]
_RULES = [{"when": {"city": ['A, "B"'], "clicks": {"to": 9}, "ip": ["::/64"]}, "url": "https://example.com/a"}]
_parameters = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["utm_source", "ä"]), "value": st.text(_letters, max_size=9)}),
    max_size=3,
)
_rgb = st.sampled_from([("rgb(0, 0, 128)", "rgb(0,0,128)"), ("rgb(0,0,0)", "rgb(0,0,0)")])
_light = st.sampled_from([("rgb( 255,255, 255 )", "rgb(255,255,255)"), ("rgb(255,255,0)", "rgb(255,255,0)")])
_EXPIRIES = [
    ("2030-12-31 23:59:59", "2030-12-31 23:59:59"),
    ("2030-12-31", "2030-12-31 23:59:59"),
    ("2030-12-31T12:00:00+02:00", "2030-12-31 10:00:00"),
]
_STARTS = [("2026-01-31", "2026-01-31 00:00:00"), ("2026-01-31 12:00 +02:00", "2026-01-31 10:00:00")]

# By the type of the field, the most specific first. A strategy may depend on the field and on existing rows.
STRATEGIES: dict[type[fields.Field[Any]], Callable[[Any, Stage], Pairs]] = {
    aliases.Alias: lambda _field, _: unique("alias-{}"),
    links.OwnDomain: lambda _field, stage: st.sampled_from(
        [(stage.domain, f"https://{stage.domain}"), ("", BASE_URL), (BASE_URL, BASE_URL)]
    ),
    links.Expiry: lambda _field, _: st.sampled_from(_EXPIRIES),
    links.Start: lambda _field, _: st.sampled_from(_STARTS),
    links.LinkType: lambda _field, stage: st.sampled_from(
        [
            *((kind, kind) for kind in ("direct", "frame", "splash", f"overlay-{stage.ids['overlay']}")),
            (stage.ids["splash"], str(stage.ids["splash"])),
            (str(stage.ids["splash"]), str(stage.ids["splash"])),
        ]
    ),
    links.Targets: lambda field, _: _targets(field),
    links.Parameters: lambda _field, _: same(_parameters),
    links.IdOrIds: lambda _field, stage: st.sampled_from(
        [([stage.ids["channel"]], [stage.ids["channel"]]), (stage.ids["channel"], [stage.ids["channel"]])]
    ),
    links.Ids: lambda _field, stage: same(st.sampled_from([[], [stage.ids["pixel"]]])),
    links.IdOrString: lambda _field, stage: st.sampled_from(
        [(stage.ids["campaign"], stage.ids["campaign"]), (str(stage.ids["campaign"]), stage.ids["campaign"]), (0, None)]
    ),
    links.DeepLink: lambda _field, _: st.dictionaries(st.sampled_from(["apple", "google"]), URLS).map(_deep_link),
    keys.Scopes: lambda _field, _: same(st.sampled_from([["links:read", "stats:read"], ["*"]])),
    keys.DomainIds: lambda _field, stage: same(st.sampled_from([[], [stage.ids["domain"]]])),
    keys.Networks: lambda _field, _: st.sampled_from([(["192.0.2.7", "::1/64"], ["192.0.2.7/32", "::/64"]), ([], [])]),
    external.Metadata: lambda _field, _: same(st.dictionaries(st.text(_letters, max_size=5), _JSON, max_size=3)),
    rules.Rules: lambda _field, _: same(st.sampled_from([[], _RULES])),
    variants.Variants: lambda _field, _: st.sampled_from([([], []), (_VARIANTS, _VARIANTS)]),
    Objects: lambda _field, _: st.lists(st.tuples(_text(base.Text()), URLS), max_size=3).map(_links),
    domains.BrandColor: lambda _field, _: same(st.sampled_from(["#124", "#14532D"])),
    domains.DomainUrl: lambda _field, _: unique("https://own{}.example.net"),
    reports.BlockedHost: lambda _field, _: st.sampled_from(
        [("evil.example", "evil.example"), ("http://BÜCHER.example:80/?a", "xn--bcher-kva.example")]
    ),
    qr.Rgb: lambda field, _: _light if field.name == "background" else _rgb,
    qr.Data: lambda _field, _: st.fixed_dictionaries(
        {"org": st.sampled_from(["Example Ltd", "Été"])}, optional={"city": st.just("Berlin")}
    ).map(_vcard),
    base.Target: lambda _field, _: URLS,
    base.Url: lambda _field, _: URLS,
    base.Email: lambda _field, _: unique("user{}@example.com"),
    base.Password: lambda field, _: (
        st.sampled_from([("secret", True), ("", False)]) if field.allow_empty else same(st.just("correct horse"))
    ),
    base.Timestamp: lambda _field, _: same(st.just("2030-12-31 23:59:59")),
    base.Choice: lambda field, _: same(st.sampled_from(field.choices)),
    base.Color: lambda field, _: same(
        st.sampled_from(["#124", "#14532D"] if field.name == "background" else ["#fff", "#FFee00"])
    ),
    plans.Members: lambda _field, _: same(st.just({})),
    base.Matching: lambda _field, _: unique("name{}"),
    base.Text: lambda field, _: _text(field),
    base.Boolean: lambda _field, _: same(st.booleans()),
    base.Integer: lambda field, _: same(st.integers(field.minimum, field.maximum)),
    base.Id: lambda _field, stage: same(st.just(stage.ids["plan"])),
}
LOGO_FILES = ("noise.png", "plain.png")
_UNIQUE_NAMES = [f"{word}{change}" for word in ("Campaign", "Channel", "Plan") for change in ("Create", "Update")]


def _member(name: str, field: fields.Field[Any], stage: Stage) -> Pairs:
    schema = type(field.parent).__name__
    if name == "name" and schema in _UNIQUE_NAMES:
        return unique("Name {}")
    if name == "type" and schema == "QrCodeCreate":
        return same(st.just("vcard"))  # the form of `data` depends on it
    if name == "message" and "Overlay" in schema:
        return same(st.sampled_from(["https://example.com/a.png", "https://example.com/a.png\nChoice\r\nOther"]))
    if name == "suspended":
        return same(st.just("no"))  # as an administrator must be
    if name in LOGOS:
        return same(st.sampled_from(LOGO_FILES))
    pairs = next(make for kind, make in STRATEGIES.items() if isinstance(field, kind))(field, stage)
    clearable = getattr(field, "allow_empty", False) and type(field) in (base.Text, base.Target, base.Url)
    return pairs | same(st.just("")) if clearable else pairs


def bodies(schema: type[Schema], stage: Stage) -> st.SearchStrategy[dict[str, tuple[Any, Any]]]:
    """Return bodies with the required and any of the optional members, each as a pair."""
    members = {name: _member(name, field, stage) for name, field in schema().fields.items()}
    required = {name for name, field in schema().fields.items() if field.required}
    return st.fixed_dictionaries(
        {name: pairs for name, pairs in members.items() if name in required},
        optional={name: pairs for name, pairs in members.items() if name not in required},
    )
