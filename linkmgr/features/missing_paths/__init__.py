"""Paths of branded domains that visitors did not find."""

from linkmgr.core.feature import Feature
from linkmgr.core.hooks import Hooks
from linkmgr.features.missing_paths import paths

FEATURE = Feature("missing_paths", hooks=Hooks(count_missing_path=paths.count), init_app=paths.init_app)
