"""A plugin of pytest for samples: every tenth test runs, the same ones every time."""

import zlib


def pytest_collection_modifyitems(config, items):
    """Leaves out nine tenths of the tests. A checksum of the name chooses, so that a new test does not change which others run."""
    left_out = [item for item in items if zlib.crc32(item.name.encode()) % 10]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
