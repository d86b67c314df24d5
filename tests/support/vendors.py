"""Vendors of pixels: a server on loopback with TLS, to which a Chromium resolves all names except those in .test."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from selenium import webdriver

from tests.support import foreign
from tests.support.browser import running
from tests.support.certificates import certificate


@contextmanager
def all_hosts(folders: pytest.TempPathFactory, answer: foreign.Answer) -> Iterator[webdriver.Chrome]:
    with foreign.server(answer, certificate(folders.mktemp("tls"))) as port:
        rules = f"MAP *.test 127.0.0.1, MAP * 127.0.0.1:{port}, EXCLUDE 127.0.0.1"
        flags = f"--host-resolver-rules={rules}", "--ignore-certificate-errors"
        with running(folders.mktemp("chromium"), *flags) as chromium:
            yield chromium
