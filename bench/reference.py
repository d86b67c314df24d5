"""The reference of all measurements: a constant from Flask under gunicorn's own thread worker.

Its settings are gunicorn's, except that it has as many workers and threads as the service.
"""

import os

from flask import Flask

worker_class = "gthread"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
threads = 4
control_socket_disable = True

app = Flask(__name__)


@app.get("/")
def constant() -> dict[str, int]:
    return {"error": 0}
