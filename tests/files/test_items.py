"""Sources and targets of a run."""

from __future__ import annotations

import pytest

from allonym.errors import UsageError
from allonym.files import anonymize_path


@pytest.mark.parametrize(
    ("source", "target", "is_refused"),
    [
        ("a.docx", "b.txt", True),
        ("a.txt", "b.docx", True),
        ("a.pdf", "b.docx", True),
        ("a.msg", "b.pdf", True),
        ("a.msg", "b.eml", False),
        ("a.docx", "b.docm", False),
        ("a.csv", "b.txt", False),
        ("a.csv", "b.out", False),
        ("a.csv", "b.csv.gz", False),
    ],
)
def test_no_file_is_called_by_the_suffix_of_another_format(tmp_path, policy, source, target, is_refused):
    from allonym.files.items import check_target_suffix, list_items

    (tmp_path / source).write_bytes(b"x")
    items, _ = list_items(tmp_path / source, tmp_path / target, None)
    if not is_refused:
        check_target_suffix(items)
        return
    with pytest.raises(UsageError, match=r"is written as .*, and .* is called"):
        anonymize_path(tmp_path / source, tmp_path / target, policy)
    assert not (tmp_path / target).exists()
