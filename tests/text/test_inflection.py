"""Endings of inflected names."""

from __future__ import annotations

from tests.rows import check_each_row

from allonym.text.inflection import find_base_forms, inflect_word


@check_each_row(
    "form, base, other, made",
    [
        ("nowakiem", "nowak", "Kowalski", "Kowalskim"),
        ("nowaka", "nowak", "Wójcik", "Wójcika"),
        ("emmy", "emma", "Zofia", "Zofii"),
        ("emmie", "emma", "Marta", "Marcie"),
        ("emmę", "emma", "Kinga", "Kingę"),
        ("krakowie", "kraków", "Berlin", "Berlinie"),
        ("warszawą", "warszawa", "Łódź", "Łódź"),
        ("kowalskiego", "kowalski", "Nowak", "Nowaka"),
        ("tylers", "tyler", "Connor", "Connors"),
        ("tylers", "tyler", "Hans", "Hans"),
        ("emmie", "emma", "Ines", "Ines"),
    ],
)
def test_another_name_gets_the_same_ending(form, base, other, made):
    endings = [ending for found, ending in find_base_forms(form) if found == base]
    assert endings
    assert inflect_word(other, endings[0]) == made
