"""Loading of libraries and models, with clear errors and without the network unless it is allowed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from allonym.errors import AllonymError, DataError, PolicyError, require_extra

_SWITCHES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
_CONSTANTS = (("huggingface_hub.constants", "HF_HUB_OFFLINE"), ("transformers.utils.hub", "_is_offline_mode"))


def import_library(module: str, extra: str) -> Any:
    """Import a module; raise :class:`MissingExtra` where its package, or one that it needs, is not installed."""
    with require_extra(f"the detector {extra}", extra):
        return import_module(module)


def require_model(settings: Mapping[str, object], detector: str) -> str:
    """Return the option ``model``; raise :class:`PolicyError` where the policy does not set it."""
    if not settings["model"]:
        raise PolicyError(f"detect.{detector}.model is required: a path, or a name that is installed here")
    return str(settings["model"])


def load_spacy(model: str, detector: str) -> Any:
    """Load a spaCy pipeline from a folder, or by the name of an installed one; raise :class:`DataError` without one."""
    try:
        return import_library("spacy", detector).load(model)
    except OSError:
        raise DataError(
            f"detect.{detector}: there is no pipeline {model!r}; a folder is required, or the name of a pipeline that "
            "is installed here"
        ) from None


def check_path_exists(path: str, what: str) -> str:
    """Return a path; raise :class:`DataError` where nothing is there."""
    if not Path(path).exists():
        raise DataError(f"{what}: there is no file or folder {path}")
    return path


@contextmanager
def block_model_hubs(
    detector: str, model: str, *, allow_download: bool = False, floor: str = "detect"
) -> Iterator[None]:
    """Switch model hubs off for a block, and turn its errors into a :class:`DataError` that names the model.

    The switches are those of the Hugging Face libraries: the environment variables that they read on import, and the
    constants that they set from these if they were imported before. Both are reset afterwards.
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
