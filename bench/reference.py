"""What everything is measured against: the machine, gunicorn and Flask, answering a constant."""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def constant() -> dict[str, int]:
    return {"error": 0}
