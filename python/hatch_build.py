"""A wheel that contains the shared libraries says for which machines it is; an editable install does not care."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface):
    """Names the platform that ``make wheels`` found out from the libraries."""

    def initialize(self, version, build_data):
        """Called before a wheel is built."""
        if tag := os.environ.get("TEGRARM_WHEEL_PLATFORM"):
            build_data["pure_python"], build_data["tag"] = False, f"py3-none-{tag}"
