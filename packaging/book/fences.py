"""For ProperDocs: takes words behind a fence's language away (`sh long`), which tell our tests something and mean nothing to it."""

import re


def on_page_markdown(markdown: str, **_kwargs) -> str:
    """Called by ProperDocs with each page's text."""
    return re.sub(r"^(```\w+) .*$", r"\1", markdown, flags=re.M)
