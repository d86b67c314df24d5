"""The reference of all measurements: gunicorn and Flask, returning a constant."""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def constant() -> dict[str, int]:
    return {"error": 0}
