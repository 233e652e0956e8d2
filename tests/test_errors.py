import importlib.metadata
import inspect
import json
import pickle
import re
import types

import pytest
from tests.rows import check_each_row

from allonym import errors
from allonym.errors import (
    AllonymError,
    DataError,
    MissingExtra,
    RefusedContent,
    RequestError,
    UnknownNameError,
    UsageError,
    write_install_command,
)

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, AllonymError)]
NAMES = {c.__name__ for c in CLASSES}
OWN_STATUS = {"EndpointError": 502, "DatabaseError": 503}


def test_the_tree_drawn_in_the_docstring_is_the_tree():
    drawn = {}
    path = []
    for line in errors.__doc__.splitlines():
        found = re.match(r"[ │├└─]+(\w+)", line)
        if found and found[1] in NAMES:
            path = [*path[: found.start(1) // 4 - 1], found[1]]
            drawn[found[1]] = path[-2] if len(path) > 1 else None
    assert drawn.pop("AllonymError") is None
    assert drawn == {c.__name__: c.__mro__[1].__name__ for c in CLASSES if c is not AllonymError}


@check_each_row("cls", [c for c in CLASSES if c is not AllonymError])
def test_every_error_is_also_a_builtin_that_callers_catch(cls):
    builtins = [b for b in cls.__mro__ if b.__module__ == "builtins" and b not in (Exception, BaseException, object)]
    assert builtins
    assert issubclass(cls, (UsageError, DataError))


@check_each_row(
    "cls, exit_code, status",
    [
        (c, 2, 400) if issubclass(c, UsageError) else (c, 1, OWN_STATUS.get(c.__name__, 422))
        for c in CLASSES
        if c is not AllonymError
    ],
)
def test_exit_code_and_status(cls, exit_code, status):
    assert (cls.exit_code, cls.status) == (exit_code, status)


def test_near_matches_come_first():
    error = UnknownNameError(
        "label", "EMAIL_ADRESS", ["EMAIL_ADDRESS", "IP_ADDRESS", "URL"], where="policy.toml: rules"
    )
    assert str(error).startswith("policy.toml: rules: unknown label 'EMAIL_ADRESS'; did you mean: EMAIL_ADDRESS")


def test_near_matches_ignore_case():
    assert "did you mean: EMAIL_ADDRESS" in str(UnknownNameError("label", "email_address", ["EMAIL_ADDRESS", "URL"]))


def test_without_near_matches_some_known_names_are_listed():
    error = UnknownNameError("scheme", "zzzzzz", [f"name{i:02}" for i in range(20)])
    assert "; known: name00, name01" in str(error)
    assert str(error).endswith(", ...")
    assert "name19" not in str(error)


def test_all_known_names_are_listed_when_few():
    assert str(UnknownNameError("scheme", "zzzzzz", ["b", "a"])) == "unknown scheme 'zzzzzz'; known: a, b"


def test_missing_extra_names_the_command():
    error = MissingExtra("Parquet", "parquet")
    assert isinstance(error, ImportError)
    assert write_install_command("parquet") in str(error)


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "pip install 'allonym[ray]'"),
        ("https://example.com/allonym.whl", "pip install 'allonym[ray]'"),
        ("file:///home/ada/allonym", "pip install '.[ray]', in the folder of allonym's source"),
        (
            "file:///tmp/allonym-1.0-py3-none-any.whl",
            "pip install './allonym-1.0-py3-none-any.whl[ray]', in the folder of",
        ),
    ],
)
def test_the_command_installs_from_where_this_package_came(monkeypatch, origin, wanted):
    record = None if origin is None else json.dumps({"url": origin})
    package = types.SimpleNamespace(read_text=lambda name: record)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: package)
    assert write_install_command("ray").startswith(wanted) and "ada" not in write_install_command("ray")


def test_refused_content_is_a_data_error():
    assert issubclass(RefusedContent, DataError)
    assert isinstance(RefusedContent("comments"), ValueError)


@pytest.mark.parametrize("error", [DataError("a"), UsageError("b"), RefusedContent("c")], ids=repr)
def test_errors_cross_process_borders(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert back.args == error.args


def test_errors_with_arguments_of_their_own_cross_process_borders():
    refused = RequestError("there is no job", 404, "NotFound")
    for error in (UnknownNameError("label", "X", ["XY"]), MissingExtra("Parquet", "parquet"), refused):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert back.status == error.status


def test_errors_of_other_packages_show_their_type_or_what_the_system_says():
    def catch(foreign, *kinds, **options):
        expected = options.get("error", DataError)
        with pytest.raises(expected) as caught, errors.hide_foreign_errors("not a table", *kinds, **options):
            raise foreign
        assert caught.value.__suppress_context__
        return str(caught.value)

    assert catch(RuntimeError("Ada Brook")) == "not a table (RuntimeError)"
    assert catch(PermissionError(13, "Ada Brook"), OSError, error=UsageError) == "not a table (Permission denied)"
    assert catch(OSError("Ada Brook"), OSError) == "not a table (OSError)"


def test_errors_of_other_kinds_pass():
    for error in (RefusedContent("a macro"), MemoryError(), KeyError("x")):
        with pytest.raises(type(error)) as caught, errors.hide_foreign_errors("not a table", ValueError):
            raise error
        assert caught.value is error
