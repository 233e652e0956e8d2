"""Derived keys and what is encrypted under them stay what they are: a change would lock everybody out."""

import pytest

from allonym.errors import UsageError
from allonym.keys import Cipher, derive_operator_key, expand_key, require_key, stretch_passphrase

KEY = b"0123456789abcdef"


def test_derived_bytes_are_frozen():
    assert derive_operator_key(KEY, "hash", "scope").hex()[:32] == "8cfa55cfd72283b9efc4bce9e8dd26be"
    assert derive_operator_key("a passphrase of words", "hash").hex()[:32] == "260098dad0cadc6ef2719c4323a9e6a9"
    assert expand_key(KEY, b"name").hex()[:32] == "96639c7cd6fe33915912b95370d60d9b"
    assert stretch_passphrase("words", b"salt", 2**14).hex()[:32] == "ee90fdb485e2834cf658b0d8bc70423c"


def test_keys_of_two_purposes_or_scopes_differ():
    assert (
        len({derive_operator_key(KEY, purpose, scope) for purpose in ("hash", "encrypt") for scope in ("", "a")}) == 4
    )


@pytest.mark.parametrize("key", [None, b"short", "short", 12])
def test_a_key_that_is_missing_or_short_is_refused(key):
    with pytest.raises(UsageError) as caught:
        require_key(key, "hash")
    assert "short" not in str(caught.value)


def test_a_sealed_value_opens_where_nothing_changed():
    cipher = Cipher(expand_key(KEY, b"test"))
    sealed = cipher.seal(b"text", b"row 1")
    assert cipher.unseal(sealed, b"row 1") == b"text"
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for damaged, about in ((sealed, b"row 2"), (changed, b"row 1"), (sealed[:20], b"row 1"), (b"", b"row 1")):
        assert cipher.unseal(damaged, about) is None
    assert Cipher(expand_key(KEY, b"other")).unseal(sealed, b"row 1") is None
