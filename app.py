"""The application object, loaded by gunicorn and the flask command."""

from linkmgr import create_app

app = create_app()
