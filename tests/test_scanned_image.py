"""A QR code from end to end: the decoded image of its `link` opens the target, and the statistics include the visit."""

import io
from urllib.parse import urlsplit

import zxingcpp
from flask import Flask
from PIL import Image

from tests.conftest import BASE_URL, Client
from tests.support import geoip
from tests.support.targets import FIREFOX, IPHONE

PAGE = "https://example.com/menu"


def test_the_decoded_image_opens_the_target_and_is_counted(located: Flask, alice: Client) -> None:
    code = alice.post("/api/qr/add", {"type": "link", "data": PAGE}).get_json()
    response = located.test_client().get(urlsplit(code["link"]).path)
    with Image.open(io.BytesIO(response.data)) as image:
        [found] = zxingcpp.read_barcodes(image, formats=zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode))
    assert found.text.startswith(f"{BASE_URL}/q/")

    for agent, address, referrer in (
        (IPHONE, geoip.PERU, "https://l.instagram.com/"),
        (IPHONE, geoip.PERU, "https://t.co/abc"),
        (FIREFOX, geoip.CHILE, ""),
    ):
        headers = {"User-Agent": agent} | ({"Referer": referrer} if referrer else {})
        path = urlsplit(found.text).path
        answer = located.test_client().get(path, headers=headers, environ_base={"REMOTE_ADDR": address})
        assert (answer.status_code, answer.headers["Location"]) == (302, PAGE)

    read = alice.get(f"/api/qr/{code['id']}").get_json()
    assert read["details"]["scans"] == 3
    assert read["data"] == {
        "clicks": 3,
        "uniqueClicks": 2,
        "topCountries": {"Peru": "2", "Chile": "1"},
        "topReferrers": {"Direct, email and other": "1", "l.instagram.com": "1", "t.co": "1"},
        "topBrowsers": {"Mobile Safari": "2", "Firefox": "1"},
        "topOs": {"iOS": "2", "Windows": "1"},
        "socialCount": {"facebook": 0, "twitter": 1, "instagram": 1},
    }
