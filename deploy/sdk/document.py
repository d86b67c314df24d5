"""Print the OpenAPI document, from which `make sdk` generates clients."""

import sys

import orjson

from linkmgr import create_app
from linkmgr.document.document import build

BASE_URL = "https://go.example.org"

app = create_app(base_url=BASE_URL, secret_key="unused" * 6, database_url="postgresql://unused")
with app.app_context():
    document = build(app, BASE_URL)
sys.stdout.buffer.write(orjson.dumps(document))
