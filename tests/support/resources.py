from linkmgr.features.utm.schema import UTM_TEMPLATES
from linkmgr.schemas.stored import STORED as OF_THE_SERVICE

STORED = (*OF_THE_SERVICE, UTM_TEMPLATES)
