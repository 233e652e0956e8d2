"""HTML pages that stand alone: templates, and a policy that allows nothing but the page's own style and script."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from allonym.errors import MissingExtra

if TYPE_CHECKING:
    from jinja2 import Environment


def load_templates(package: str, needed_for: str, extra: str) -> Environment:
    """The Jinja2 environment of the folder ``templates`` of a package; it escapes whatever templates are given.

    Raises:
        MissingExtra: Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtra(needed_for, extra) from error
    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["safe"] = Markup
    return environment


@cache
def read_resource(path: str) -> str:
    """A file of the package ``allonym.report``."""
    return files("allonym").joinpath("report", *path.split("/")).read_text(encoding="utf-8")


def embed_resources(style: str, script: str) -> dict[str, str]:
    """What a template needs to hold a style and a script: both as they are, and the policy that allows them."""
    from markupsafe import Markup

    return {"style": Markup(style), "script": Markup(script), "policy": write_policy(style, script)}


def write_policy(style: str, script: str = "") -> str:
    """A content security policy that allows a style and a script by their digests, and nothing else."""
    allowed = f"script-src {_hash_content(script)}; " if script else ""
    return f"default-src 'none'; style-src {_hash_content(style)}; {allowed}base-uri 'none'; form-action 'none'"


def _hash_content(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"
