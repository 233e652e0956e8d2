"""Names in other scripts, written in Latin letters."""

from __future__ import annotations

_CYRILLIC = dict(zip("абвгдезийклмнопрстуфыэ", "a b v g d e z i y k l m n o p r s t u f y e".split(), strict=True))
_CYRILLIC |= {"ё": "yo", "ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ь": ""}
_CYRILLIC |= {"ю": "yu", "я": "ya", "’": "", "'": "", "ʼ": ""}
_UKRAINIAN = _CYRILLIC | {"г": "h", "ґ": "g", "и": "y", "і": "i", "ї": "i", "й": "i", "є": "ie"}
_BULGARIAN = _CYRILLIC | {"х": "h", "щ": "sht", "ъ": "a"}
_GREEK_LETTERS = "a v g d e z i th i k l m n x o p r s t y f ch ps o s".split()
_GREEK = dict(zip("αβγδεζηθικλμνξοπρστυφχψως", _GREEK_LETTERS, strict=True))
_GREEK |= dict(zip("άέήίόύώϊϋΐΰ", "a e i i o y o i y i y".split(), strict=True))
_GREEK_PAIRS = {"ου": "ou", "ού": "ou", "αυ": "av", "αύ": "av", "ευ": "ev", "εύ": "ev", "γγ": "ng", "γκ": "gk"}
_GREEK_PAIRS |= {"μπ": "mp", "γχ": "nch"}
_GEORGIAN_LETTERS = "a b g d e v z t i k l m n o p zh r s t u p k gh q sh ch ts dz ts ch kh j h".split()
_GEORGIAN = dict(zip("აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ", _GEORGIAN_LETTERS, strict=True))
_LEADS = "g kk n d tt r m b pp s ss  j jj ch k t p h".split(" ")
_VOWELS = "a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i".split()
_TAILS = " k k k n n n t l k m l l l p l m p p t t ng t t k t p t".split(" ")
_KOREAN_FAMILIES = {"김": "Kim", "이": "Lee", "박": "Park", "최": "Choi", "정": "Jung", "오": "Oh", "우": "Woo"}


def _romanise_hangul(name: str) -> str:
    if name in _KOREAN_FAMILIES:
        return _KOREAN_FAMILIES[name]
    out = ""
    for letter in name:
        index = ord(letter) - 0xAC00
        if not 0 <= index < 11172:
            return ""
        lead, rest = divmod(index, 588)
        vowel, tail = divmod(rest, 28)
        out += _LEADS[lead] + _VOWELS[vowel] + _TAILS[tail]
    return out


def _romanise_greek(name: str) -> str:
    if name.startswith("μπ"):
        name = f"b{name[2:]}"
    if name.startswith("γκ"):
        name = f"gk{name[2:]}"
    for pair, letters in _GREEK_PAIRS.items():
        name = name.replace(pair, letters)
    return "".join(_GREEK.get(c, c) for c in name)


def romanise_name(name: str, script: str) -> str:
    """Return a name in Latin letters with a capital; as it is without a script; empty where that cannot be done.

    Args:
        script: ``cyrillic`` (Russian), ``cyrillic-uk``, ``cyrillic-bg``, ``greek``, ``georgian``, ``hangul``.
    """
    if not script:
        return name
    if script == "hangul":
        text = _romanise_hangul(name)
    elif script == "greek":
        text = _romanise_greek(name.lower())
    else:
        table = {"cyrillic": _CYRILLIC, "cyrillic-uk": _UKRAINIAN, "cyrillic-bg": _BULGARIAN, "georgian": _GEORGIAN}
        low = name.lower()
        if script in ("cyrillic", "cyrillic-uk") and low.endswith("ий"):
            low = low.removesuffix("ий") + "y"
        text = "".join(table[script].get(c, c) for c in low)
    return text[:1].upper() + text[1:] if text.isascii() and text.isalpha() else ""
