"""For ProperDocs: removes the words behind the language of a fence (`sh long`). They mean something to our tests and nothing to
ProperDocs.
"""

import re


def on_page_markdown(markdown: str, **_kwargs) -> str:
    """ProperDocs calls this with the text of each page."""
    return re.sub(r"^(```\w+) .*$", r"\1", markdown, flags=re.M)
