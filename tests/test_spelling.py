"""What people read: British spelling, with -ise, also where the code says ``anonymize``; papers by their authors."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
AMERICAN = re.compile(
    r"\b(?:de-?)?[a-z]+(?:iz(?:e[sdr]?|ers|ing|ations?)|yz(?:e[sdr]?|ing))\b|\borganizations?\b"
    r"|\b(?:color|behavior|neighbor|favor|flavor|honor|labor|rumor)(?:s|ed|ing)?\b"
    r"|\b(?:cente|fibe|kilomete)rs?\b|\b(?:label|model|cancel|travel)(?:ed|ing)\b|\bgray\b|\bcatalogs?\b|\bartifacts?\b",
    re.IGNORECASE,
)
BRITISH_TOO = frozenset(
    "size sizes sized sizing resize resized resizing oversize prize prizes seize seized seizes capsize "
    "maize bulldozer organizer apprize".split()
)
TERMS = frozenset(
    "recognizer recognizers tokenizer tokenizers analyzer anonymizer deanonymizer normalizer optimizer".split()
)
"""Of Presidio and of libraries, which everybody calls so."""

NAMES = frozenset("anonymize sanitize analyze autocapitalize docsize".split())
"""Of functions, operators, routes and attributes, as code calls them."""

ELSEWHERE = re.compile(  # titles, names of laws, licences and forms of others, and words that people search for
    r"Anonymization Benchmark|Metadata Anonymization|Data Anonymization|Pseudonymization \(CALD|Anonymized Data"
    r"|study of Pseudonymization|Beyond Memorization|Authorization|authorization|\(de-anonymize[^)]*\)"
)
CODE = re.compile(
    r"^( *)(`{3,}|~{3,}).*?^\1\2|(?:^    .*\n)+|(``?)[^`]+?\3|\]\([^)]*\)|https?://\S+|<[^>]+>",
    re.DOTALL | re.MULTILINE,
)
DATA = {"docs/examples.md", "docs/reference/rules.md"}
"""Texts and words that are looked for."""


def _list_files(pattern: str, *folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).glob(pattern))


def _find_american(text: str) -> Iterator[str]:
    for found in AMERICAN.finditer(ELSEWHERE.sub(" ", text)):
        if found[0].lower() not in BRITISH_TOO | TERMS and found[0] not in ("Organization", "Organizations"):
            yield found[0]


def _read_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what people read in a file, with the line where it begins."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        for number, line in enumerate(CODE.sub(lambda code: "\n" * code[0].count("\n"), text).split("\n"), 1):
            yield number, line
    elif path.suffix == ".js":
        for number, line in enumerate(text.split("\n"), 1):
            for words in re.findall(r'"[^"]* [^"]*"|`[^`]* [^`]*`|// .*', line):
                yield number, re.sub(r"\$\{[^}]*}|[\w-]*/[\w/-]*", "", words)
    else:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_docstring = token.type == tokenize.STRING and '"""' in token.string[:5]
            if is_docstring or token.type == tokenize.COMMENT:
                yield token.start[0], CODE.sub("", token.string)


@pytest.mark.parametrize(
    "files",
    [
        _list_files("*.md", "", "docs/**", "changelog.d", "src/**", "packages/**"),
        _list_files("**/*.py", "src/allonym", "benchmarks"),
        _list_files("**/*.js", "src/allonym/server/static/js", "src/allonym/report/templates"),
    ],
    ids=["manual", "docstrings", "pages"],
)
def test_what_people_read_has_british_spelling(files):
    read = [path for path in files if str(path.relative_to(ROOT)) not in DATA and path.name != "CHANGELOG.md"]
    assert len(read) > 20
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in read
        for number, prose in _read_prose(path)
        for word in _find_american(prose)
        if path.suffix == ".md" or word.lower() not in NAMES
    ]
    assert not wrong, "\n".join(wrong)


def test_american_spelling_is_seen():
    assert list(_find_american("Anonymize the color of an organization; a prize-winning tokenizer.")) == [
        "Anonymize", "color", "organization",
    ]  # fmt: skip


def test_papers_have_names_where_users_read():
    """The manual numbers five papers; whoever reads help, a report or a page of the server has not read that."""
    pages = [ROOT / "README.md", *_list_files("*.md", "docs/how-to")]
    pages += [ROOT / "docs" / name for name in ("tutorial.md", "reference/cli.md", "reference/server.md")]
    code = _list_files(
        "**/*.py", "src/allonym/report", "src/allonym/server/wire", "src/allonym/server/routes", "src/allonym/cli"
    )
    code += _list_files("**/*.js", "src/allonym/server/static/js")
    strings = re.compile(r'"{1,3}(?!"").*?[^"]"|`[^`]*`', re.DOTALL)
    texts = {path: path.read_text(encoding="utf-8") for path in [*pages, *code]}
    wrong = []
    for path, text in texts.items():
        if path.suffix == ".py":
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            text = "\n".join(
                token.string for token in tokens if token.type == tokenize.STRING and token.start != (1, 0)
            )
        elif path.suffix == ".js":
            text = "\n".join(strings.findall(text))
        wrong += [f"{path.relative_to(ROOT)}: {found}" for found in re.findall(r".*\bP[1-5]\b(?!\.).*", text)]
    assert not wrong, "\n".join(wrong)
