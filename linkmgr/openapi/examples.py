"""A body of each kind that the service takes, as people may copy it."""

from typing import Any

EXAMPLES: dict[str, dict[str, Any]] = {
    "AccountChanges": {"email": "dana@example.com"},
    "NewLink": {
        "url": "https://example.com/sale",
        "custom": "summer",
        "expiry": "2030-12-31 23:59:59",
        "geotarget": [{"location": "Germany", "link": "https://example.de/sale"}],
        "parameters": [{"name": "utm_source", "value": "newsletter"}],
    },
    "LinkChanges": {"url": "https://example.com/winter", "metatitle": "Winter sale"},
    "NewBio": {"name": "Dana", "theme": "ocean", "links": [{"title": "Shop", "url": "https://example.com/shop"}]},
    "BioChanges": {"bio": "I write.", "theme": "dark"},
    "NewDomain": {"domain": "https://go.example.com", "redirectroot": "https://example.com/"},
    "DomainChanges": {"redirect404": "https://example.com/missing"},
    "NewSplash": {"name": "Launch", "title": "One moment", "counter": 5},
    "SplashChanges": {"message": "You are on your way."},
    "NewOverlay": {"type": "message", "name": "Sale", "message": "Everything must go.", "color": "#ffffff"},
    "OverlayChanges": {"label": "Have a look", "position": "top"},
    "NewPixel": {"type": "gtmpixel", "name": "Shop", "tag": "GTM-ABC123"},
    "PixelChanges": {"tag": "GTM-XYZ789"},
    "NewQr": {"type": "link", "data": "https://example.com/", "name": "Poster", "foreground": "rgb(0,0,128)"},
    "QrChanges": {"data": "https://example.com/winter"},
    "NewCampaign": {"name": "Summer", "slug": "summer", "public": True},
    "CampaignChanges": {"name": "Winter"},
    "NewChannel": {"name": "Reading", "description": "For the train", "color": "#3b82f6", "starred": True},
    "ChannelChanges": {"starred": False},
    "Subscription": {"type": "yearly"},
    "NewUser": {"username": "carol", "email": "carol@example.com", "password": "correct horse"},
}


def of(schema: Any, named: dict[str, Any]) -> Any:
    """What an answer of this JSON Schema may look like, made of the examples of its members."""
    if "$ref" in schema:
        return of(named[schema["$ref"].rpartition("/")[2]], named)
    if "examples" in schema:
        return schema["examples"][0]
    if schema.get("items"):
        return [of(schema["items"], named)]
    return {name: of(member, named) for name, member in schema.get("properties", {}).items()}
