"""Loading libraries and models: named errors, and no network unless it is allowed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from allonym.errors import AllonymError, DataError, MissingExtra, PolicyError

_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
_CONSTANTS = (("huggingface_hub.constants", "HF_HUB_OFFLINE"), ("transformers.utils.hub", "_is_offline_mode"))


def import_library(module: str, extra: str) -> Any:
    """The module; :class:`MissingExtra` where the package, or one that it needs, is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"the detector {extra}", extra) from None


def require_option(settings: Mapping[str, object], detector: str, key: str = "model") -> str:
    """The option ``key``; :class:`PolicyError` where the policy does not say it."""
    value = settings[key]
    if not value:
        raise PolicyError(f"detect.{detector}.{key} is required: a path, or a name that is installed here")
    return str(value)


def check_exists(path: str, what: str) -> str:
    """The path; :class:`DataError` where nothing is there."""
    if not Path(path).exists():
        raise DataError(f"{what}: there is no file or folder {path}")
    return path


@contextmanager
def load_offline(detector: str, model: str, *, allow_download: bool = False, floor: str = "detect") -> Iterator[None]:
    """What goes wrong inside becomes a :class:`DataError` that names the model; hubs are switched off meanwhile.

    The switches are those of the Hugging Face libraries: environment variables, which they read when they are imported,
    and what they made of them if they are imported already. Both are put back.
    """
    set_before = {name: os.environ.get(name) for name in _SWITCHES}
    constants = [
        (sys.modules[m], name, getattr(sys.modules[m], name, None)) for m, name in _CONSTANTS if m in sys.modules
    ]
    if not allow_download:
        os.environ.update(dict.fromkeys(_SWITCHES, "1"))
        for module, name, value in constants:
            if value is not None:
                setattr(module, name, True)
    try:
        yield
    except AllonymError:
        raise
    except Exception as error:  # no text has been read yet, but messages of libraries hold pages of advice
        hint = "" if allow_download else "; models are not fetched unless the table says allow_download = true"
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise DataError(f"{floor}.{detector}: cannot load the model {model!r} ({reason}){hint}") from None
    finally:
        if not allow_download:
            for name, before in set_before.items():
                if before is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = before
            for module, name, value in constants:
                if value is not None:
                    setattr(module, name, value)
