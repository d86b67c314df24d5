"""The files and functions that one request passes, which a newcomer reads to follow it, are few."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from flask import Flask

import linkmgr
from tests.conftest import Client

FOLDER = f"{Path(linkmgr.__file__).parent}/"
PARTS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")  # of a function
WARM = 3  # requests that prepare statements and fill caches
PASSED: dict[str, tuple[dict[str, str], int, int]] = {
    "POST /api/campaign/add": ({"name": "Campaign {}"}, 17, 68),
    "POST /api/url/add": ({"url": "https://example.com/{}"}, 22, 85),
    "GET /api/urls": ({}, 16, 56),
}


def functions_called(work: Callable[[], Any]) -> set[CodeType]:
    found = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDER) and code.co_name not in PARTS:
            found.add(code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("call", PASSED)
def test_a_request_passes_few_files_and_functions(
    app: Flask, register: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (method, path), (body, files, functions) = call.split(), PASSED[call]
    carol = register("carol", plan="Pro")
    monkeypatch.setattr(app.extensions["linkmgr_visit_queue"], "flush", bool)  # tests call it after each request

    def send(number: int) -> None:
        data = json.dumps({name: text.format(number) for name, text in body.items()}) if body else None
        headers = {"Authorization": f"Bearer {carol.key}"}
        assert app.test_client().open(path, method=method, data=data, headers=headers).status_code == 200

    for number in range(WARM):
        send(number)
    called = functions_called(lambda: send(WARM))
    listed = sorted(f"{code.co_filename.removeprefix(FOLDER)}: {code.co_qualname}" for code in called)
    assert (len({code.co_filename for code in called}) <= files, len(called) <= functions) == (True, True), listed
