"""Sign-in besides passwords: OpenID Connect, an authenticating proxy, passkeys, one-time codes."""

from flask import Flask

from linkmgr.core.feature import Feature
from linkmgr.core.settings import PREFIX, InvalidSetting, settings
from linkmgr.features.signin import commands


def _check(_app: Flask) -> None:
    """Refuse settings that need others."""
    chosen = settings()
    if chosen.oidc_issuer and not chosen.oidc_client_id:
        raise InvalidSetting(f"{PREFIX}OIDC_ISSUER needs {PREFIX}OIDC_CLIENT_ID, which the provider gives.")
    if chosen.remote_user_header and not chosen.trusted_proxies:
        raise InvalidSetting(
            f"{PREFIX}REMOTE_USER_HEADER needs {PREFIX}TRUSTED_PROXIES: without a proxy, any client could "
            "send the header."
        )


FEATURE = Feature("signin", commands=(commands.group,), init_app=_check)
