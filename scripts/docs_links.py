"""Leads links of the site to files outside docs/ to the repository."""

import logging
import pathlib
import posixpath
import re

log = logging.getLogger("mkdocs.hooks.docs_links")
root = pathlib.Path(__file__).resolve().parent.parent
link = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown, page, config, **_):
    folder = posixpath.dirname("docs/" + page.file.src_uri)

    def resolve(match):
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        if path.startswith("docs/"):
            return match[0]  # a page of the site: MkDocs checks it
        if not (root / path).exists():
            log.warning("%s links to %s, which is not in the repository", page.file.src_uri, path)
        return f"]({config.repo_url.rstrip('/')}/blob/main/{path}{match[2] or ''})"

    return link.sub(resolve, markdown)
