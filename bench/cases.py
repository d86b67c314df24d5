"""The measured requests: a wrk script for each."""

import json
import secrets
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.request import urlopen

from bench.data import BUSY, QRS, Data, User

# Rows that are measured twice: with 400 users, each of whom has the limits of a plan, and with one
# user without limits.
LIST, READ, CREATE, REDIRECT = (
    "list of 15",
    "single read with statistics",
    "create a link",
    "redirect and visit",
)
WITHOUT_LIMITS = ", without limits"

_AGENTS = [
    f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1{version}.0.0.0 Safari/537.36"
    for version in range(20, 30)
    for system in ("Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64")
]


def _headers(headers: dict[str, str]) -> str:
    return "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in headers.items())


def get(path: str, headers: dict[str, str]) -> str:
    return f'{_headers(headers)}wrk.path = "{path}"\n'


def numbered(method: str, path: str, body: str, headers: dict[str, str]) -> str:
    """Send a different request each time. `path` or `body` has placeholders for the number of the
    run and of the request."""
    return f"""
        wrk.method = "{method}"
        {_headers(headers)}
        math.randomseed(tonumber(tostring({{}}):match("0x(%x+)"), 16) + os.time())
        local run, sent = math.random(2 ^ 31), 0
        function request()
            sent = sent + 1
            local path, body = string.format('{path}', run, sent), string.format('{body}', run, sent)
            return wrk.format(nil, path, nil, body)
        end
    """


def post(path: str, body: str, headers: dict[str, str]) -> str:
    return numbered("POST", path, body, headers | {"Content-Type": "application/json"})


class Case(NamedTuple):
    script: str  # for wrk
    request: Callable[[], dict[str, Any]]  # the same request for Flask's test client
    serial: bool = False  # sent over one connection, because the service refuses concurrent ones


def _create(users: list[User], *, keyed: bool = False) -> Case:
    """Create links for each of the users in turn, if `keyed` with a header `Idempotency-Key`."""
    script = f"""
        math.randomseed(tonumber(tostring({{}}):match("0x(%x+)"), 16) + os.time())
        local keys, run, sent = {_lua(user.key for user in users)}, math.random(2 ^ 31), 0
        function request()
            sent = sent + 1
            local number = string.format("%x-%d", run, sent)
            local headers = {{ ["Authorization"] = "Bearer " .. keys[sent % #keys + 1],
                              ["Content-Type"] = "application/json" }}
            {'headers["Idempotency-Key"] = number' if keyed else ""}
            return wrk.format("POST", "/api/url/add", headers, '{{"url": "https://example.com/' .. number .. '"}}')
        end
    """

    def request() -> dict[str, Any]:
        number = secrets.token_hex(8)
        headers = _authorization(users[0].key) | ({"Idempotency-Key": number} if keyed else {})
        return _request("/api/url/add", f'{{"url": "https://example.com/{number}"}}', headers)

    return Case(script, request)


def _lua(texts: Iterable[str]) -> str:
    return f"{{ {', '.join(map(json.dumps, texts))} }}"


def _authorization(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _each(users: list[User], path: Callable[[User], str]) -> Case:
    """Read a path of each of the users in turn."""
    script = f"""
        local keys, paths, sent = {_lua(user.key for user in users)}, {_lua(map(path, users))}, 0
        function request()
            sent = sent + 1
            local n = sent % #keys + 1
            return wrk.format("GET", paths[n], {{ ["Authorization"] = "Bearer " .. keys[n] }})
        end
    """
    return Case(script, lambda: {"path": path(users[0]), "headers": _authorization(users[0].key)})


def _update(data: Data) -> Case:
    path, headers = f"/api/url/{data.link}/update", _authorization(data.key)
    script = numbered("PUT", path, '{"metatitle": "%x %d"}', headers | {"Content-Type": "application/json"})
    body = '{"metatitle": "%s"}'
    return Case(script, lambda: _request(path, body % secrets.token_hex(8), headers) | {"method": "PUT"})


def _visits(paths: list[str]) -> Case:
    """Visit links with thirty browsers from three sites."""
    script = f"""
        local agents, paths, sent = {_lua(_AGENTS)}, {_lua(paths)}, 0
        local sites = {{ "https://news.example/", "https://t.co/abc", "https://www.example.org/page" }}
        function request()
            sent = sent + 1
            local headers = {{ ["User-Agent"] = agents[sent % 30 + 1], ["Referer"] = sites[sent % 3 + 1] }}
            return wrk.format("GET", paths[sent % #paths + 1], headers)
        end
    """
    return Case(script, lambda: {"path": paths[0], "headers": {"User-Agent": _AGENTS[0]}})


def _images() -> str:
    """Request images of random codes in random sizes, so that few are in the cache."""
    return f"""
        function request()
            return wrk.format("GET", string.format("/qr/code-%d?size=%d", math.random({QRS}), math.random(300, 600)))
        end
    """


def _reading(path: str, headers: dict[str, str]) -> Case:
    return Case(get(path, headers), lambda: {"path": path, "headers": headers})


def _writing(path: str, body: str, headers: dict[str, str]) -> Case:
    return Case(post(path, body, headers), lambda: _request(path, body % (secrets.randbits(64), 0), headers))


def _request(path: str, data: str, headers: dict[str, str]) -> dict[str, Any]:
    return {
        "path": path,
        "method": "POST",
        "headers": headers,
        "data": data,
        "content_type": "application/json",
    }


def _bulk(key: dict[str, str]) -> Case:
    """Create 1,000 links with each request."""
    script = f"""
        wrk.method = "POST"
        wrk.headers["Authorization"] = "{key["Authorization"]}"
        wrk.headers["Content-Type"] = "application/json"
        math.randomseed(tonumber(tostring({{}}):match("0x(%x+)"), 16) + os.time())
        local run, sent = math.random(2 ^ 31), 0
        function request()
            sent = sent + 1
            local links = {{}}
            for n = 1, 1000 do
                links[n] = string.format('{{"url": "https://example.com/%x/%d/%d"}}', run, sent, n)
            end
            return wrk.format(nil, "/api/urls/bulk", nil, '{{"urls": [' .. table.concat(links, ",") .. ']}}')
        end
    """

    def request() -> dict[str, Any]:
        run = secrets.randbits(64)
        data = json.dumps({"urls": [{"url": f"https://example.com/{run:x}/{n}"} for n in range(1000)]})
        return _request("/api/urls/bulk", data, key)

    return Case(script, request)


def page(data: Data, number: int) -> Case:
    return _reading(f"/api/urls?page={number}", _authorization(data.key))


def behind(data: Data, cursor: int) -> Case:
    return _reading(f"/api/urls?limit=15&after={cursor}", _authorization(data.key))


def search(data: Data, text: str) -> Case:
    return _reading(f"/api/urls?limit=15&q={text}", _authorization(data.key))


def all_cases(data: Data, base: str) -> dict[str, Case]:
    key = _authorization(data.key)
    alone = [User(data.key, data.link, BUSY)]
    with urlopen(f"{base}/qr/{BUSY}") as response:
        condition = {"If-None-Match": response.headers["ETag"]}

    return {
        LIST: _each(data.users, lambda user: "/api/urls?limit=15"),
        LIST + WITHOUT_LIMITS: _reading("/api/urls?limit=15", key),
        READ: _each(data.users, lambda user: f"/api/url/{user.link}"),
        READ + WITHOUT_LIMITS: _reading(f"/api/url/{data.link}", key),
        CREATE: _create(data.users),
        CREATE + WITHOUT_LIMITS: _create(alone),
        REDIRECT: _visits([f"/{user.alias}" for user in data.users]),
        REDIRECT + WITHOUT_LIMITS: _visits([f"/link-{n}" for n in range(1, 101)]),
        "redirect and visit with a click id, without limits": _visits(
            [f"/link-{n}" for n in range(101, 201)]
        ),
        "account": _reading("/api/account", key),
        "30 days by day": _reading(f"/api/stats?ids={data.link}&by=time:day", key),
        "create a channel": _writing("/api/channel/add", '{"name": "%x %d"}', key),
        "create a link with Idempotency-Key": _create(alone, keyed=True),
        "update a link": _update(data),
        "create 1,000 links in one request": _bulk(key),
        "QR image, rendered": Case(_images(), lambda: {"path": "/qr/code-1"}, serial=True),
        "QR image, not modified": _reading(f"/qr/{BUSY}", condition),
        "healthz": _reading("/healthz", {}),
    }
