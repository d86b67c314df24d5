"""Of any number of uses of one login link, at once and over several workers, exactly one signs in."""

import http.client
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from tests.conftest import Client


def use(link: str) -> tuple[int, bool]:
    """The status, and whether the answer signs in."""
    address = urlsplit(link)
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    headers = {"Origin": f"{address.scheme}://{address.netloc}", "Content-Length": "0"}
    connection.request("POST", address.path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, "account" in answer.headers.get("Location", "") and "Set-Cookie" in answer.headers


def test_of_50_concurrent_uses_exactly_one_signs_in(serve: Callable[..., str], admin: Client, alice: Client) -> None:
    base = serve("--workers", "4")
    for _ in range(3):
        token = admin.get(f"/api/user/login/{alice.id}").get_json()["url"].rsplit("/", 1)[1]
        with ThreadPoolExecutor(25) as pool:
            outcomes = Counter(pool.map(use, [f"{base}/login/{token}"] * 50))
        assert outcomes == {(303, True): 1, (410, False): 49}
