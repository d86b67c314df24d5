from linkmgr.core.fields.base import Integer
from linkmgr.core.fields.bodies import New
from linkmgr.core.fields.member import member

MAX_OVERLAP = 7 * 86400  # seconds


class Rotation(New):
    """Body that replaces a secret. Each operation has its own default."""

    overlap = member(
        Integer(0, MAX_OVERLAP, load_default=None),
        "The seconds for which the previous one stays valid, at most 7 days.",
        86400,
    )
