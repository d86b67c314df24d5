"""What gunicorn and the flask command load."""

from linkmgr import create_app

app = create_app()
