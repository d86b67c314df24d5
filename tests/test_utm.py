"""UTM templates, and where the console offers them. The members of templates are tested for all resources at once."""

from urllib.parse import parse_qsl, urlsplit

from flask.testing import FlaskClient

from tests.conftest import Client
from tests.support.pages import fields, get, words

LETTER = {"name": "Letter", "utm_source": "letter", "utm_medium": "email", "utm_campaign": "summer"}
REF = {"name": "ref", "value": "a"}


def parameters(client: Client, link_id: int) -> list[tuple[str, str]]:
    details = client.get(f"/api/url/{link_id}").get_json()["details"]
    return [(pair["name"], pair["value"]) for pair in details["parameters"]]


def test_an_account_has_at_most_100_templates(alice: Client) -> None:
    for number in range(100):
        alice.add("/api/utm/add", {"name": f"Template {number}"})
    answer = alice.post("/api/utm/add", {"name": "One more"})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "utm_full")


def test_a_template_fills_in_the_empty_fields_of_a_link(console: FlaskClient, alice: Client, bob: Client) -> None:
    template = alice.add("/api/utm/add", LETTER)
    form = fields(get(console, "/console/links/new"))
    assert (form["utm"], form["utm_source"]) == ([""], [""])
    typed = form | {"url": "https://example.com/?a#b", "utm": [str(template)], "utm_medium": ["print"]}
    preview = console.post("/console/links/new", data=typed | {"again": "preview"}).text
    target = "https://example.com/?a&utm_source=letter&utm_medium=print&utm_campaign=summer#b"
    assert f'Visitors go to <bdi dir="ltr">{target.replace("&", "&amp;")}</bdi>' in words(preview)
    path = console.post("/console/links/new", data=typed).headers["Location"]
    link_id = int(path.rpartition("/")[2])
    assert parameters(alice, link_id) == [*parse_qsl(urlsplit(target).query)]

    alice.put(f"/api/utm/{template}/update", {"utm_source": "other"})
    edited = fields(get(console, f"{path}/edit"))
    assert (edited["utm_source"], edited["utm_campaign"], edited["parameters.name"]) == (["letter"], ["summer"], [""])
    console.post(f"{path}/edit", data=edited | {"utm_campaign": "", "parameters.name": "ref", "parameters.value": "a"})
    assert parameters(alice, link_id) == [("utm_source", "letter"), ("utm_medium", "print"), ("ref", "a")]
    assert fields(get(console, f"/console/links/new?utm={template}"))["utm_source"] == ["other"]
    assert fields(get(console, f"/console/links/new?utm={bob.add('/api/utm/add', LETTER)}"))["utm_source"] == [""]


def test_an_unchanged_form_keeps_the_order_of_parameters(console: FlaskClient, alice: Client) -> None:
    stored = [REF, *({"name": "utm_source", "value": value} for value in ("", "b", "c"))]
    link_id = alice.add("/api/url/add", {"url": "https://example.com", "parameters": stored})
    path = f"/console/links/{link_id}/edit"
    form = fields(get(console, path))
    assert (form["utm_source"], form["parameters.value"]) == (["b"], ["a", "", "c", ""])
    console.post(path, data=form | {"title": "New"})
    assert parameters(alice, link_id) == [("ref", "a"), ("utm_source", ""), ("utm_source", "b"), ("utm_source", "c")]


def test_selected_links_and_all_links_get_the_parameters_of_a_template(
    console: FlaskClient, alice: Client, bob: Client
) -> None:
    def change(**sent: object) -> str:
        answer = console.post("/console/links/selected", data={"action": "utm", "template": template} | sent)
        assert answer.status_code in (200, 303, 400, 404)
        return words(answer.text)

    template, foreign = alice.add("/api/utm/add", LETTER), bob.add("/api/utm/add", LETTER)
    old: tuple[list[dict[str, str]], ...] = ([{"name": "utm_source", "value": "old"}, REF], [])
    links = [alice.add("/api/url/add", {"url": "https://example.com", "parameters": sent}) for sent in old]
    assert ">Set UTM parameters</button>" in get(console, "/console/links")
    for chosen in (foreign, "x", ""):
        change(id=links, template=chosen)
        assert parameters(alice, links[1]) == []
    change(id=links[:1])
    added = [("utm_source", "letter"), ("utm_medium", "email"), ("utm_campaign", "summer")]
    assert [parameters(alice, row_id) for row_id in links] == [[*added, ("ref", "a")], []]
    assert "Change 2 links<bdi> to the chosen UTM template</bdi>?" in change(all="1")
    change(all="1", below=links[1] + 1, number="2", done="0")
    assert [parameters(alice, row_id) for row_id in links] == [[*added, ("ref", "a")], added]

    for more, expected in (("a", []), ("", added)):  # a link has at most 2048 characters of parameters
        ref = REF | {"value": "ä~ " + "a" * 1981 + more}
        alice.put(f"/api/url/{links[1]}/update", {"parameters": [ref]})
        assert ("at most 2048 characters" in change(id=links)) == bool(more)
        assert parameters(alice, links[1]) == [*expected, ("ref", ref["value"])]
