"""Create a short link, read the list of all links, and verify webhooks.

Needs Python 3.9 or later, and no packages.
"""

import base64
import hashlib
import hmac
import json
import os
import time
import uuid
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def call(method, path, body=None):
    """Send a request, again if the limit is reached or the service is busy."""
    headers = {
        "Authorization": f"Bearer {os.environ['KEY']}",
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid.uuid4()),  # a write that is repeated is carried out once
    }
    data = None if body is None else json.dumps(body).encode()
    request = Request(os.environ["BASE"] + path, data, headers, method=method)
    while True:
        try:
            with urlopen(request, timeout=30) as response:
                return json.load(response)
        except HTTPError as error:
            if error.code not in (429, 503):
                raise SystemExit(json.load(error)["message"])
            time.sleep(int(error.headers["Retry-After"]))


def links():
    after = ""
    while after is not None:
        page = call("GET", f"/api/urls?limit=100&after={after}")["data"]
        yield from page["urls"]
        after = page.get("next")


def is_genuine(secret, headers, body):
    """Return True if a webhook with this secret sent the body within the last five minutes.

    The body is the bytes that arrived, before they are parsed.
    """
    sent = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{sent}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    signatures = headers["webhook-signature"].split(" ")
    is_signed = any(hmac.compare_digest(f"v1,{signature}", other) for other in signatures)
    return is_signed and abs(time.time() - int(sent)) < 300


if __name__ == "__main__":
    link = call("POST", "/api/url/add", {"url": "https://example.com/a/long/path"})
    print(link["shorturl"])
    print(sum(1 for _ in links()), "links")
