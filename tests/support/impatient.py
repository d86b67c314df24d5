"""The service with a short deadline of uploads, for tests."""

from app import app
from linkmgr.core.web import uploads

uploads.DEADLINE = 2

__all__ = ("app",)
