"""Technical passages of a text, such as code, logs and data, and which findings count in them.

:func:`find_technical_passages` reads lines. A passage holds two lines at least that only programs write, or one that is
unmistakable, and what lies between and beside them: comments, docstrings, continuation lines. Pieces in backticks, tags
of a markup language and fenced blocks are passages too. A string of twelve words and more is prose, and no part of one.

:func:`drop_technical_noise` keeps what identifies in a passage: secrets, addresses, numbers of people and accounts, and
names that look like names. Keywords, identifiers, versions, digests, time stamps, and the placeholders of documentation
(``YOUR_API_KEY``, ``user@example.com``, ``555-0142``) are dropped.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

import re2

from allonym.detection import TAGGER
from allonym.detection.listed_names import IN_PATH
from allonym.detection.scan import compile_pattern, encode_text, find_matches
from allonym.detection.words import read_common_terms, read_ordinary_words, read_word_list
from allonym.document import Interval, Reach, Span, merge_intervals, subtract_intervals
from allonym.kb import KnowledgeBase
from allonym.labels import Taxonomy
from allonym.text.memory import remember_texts
from allonym.text.names import PARTICLES
from allonym.text.words import IDENTIFIER

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
FENCE = re.compile(r"^[ \t>]*```[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)
"""The line of three backticks around a block, and the language that it names."""
_UNCODED = frozenset("text txt plain plaintext markdown md none quote".split())
"""Languages of fenced blocks that are prose."""
_INLINE = re.compile(r"(?<![\w`])(`{1,3})(?![\s`])[^`\n]{1,200}(?<!\s)\1(?![\w`])|(?<=\])\([^()\s]*\)")
_TAG = re.compile(
    r"</?[a-z][\w:.-]*(?:\s+[\w:@.-]+(?:\s*=\s*(?:\"[^\"<>]{0,400}\"|'[^'<>]{0,400}'|[\w#.:/-]{1,80}))?)*\s*/?>"
)
_COMMENT = re.compile(r"(?:#|//|/\*|\*|--\s|<!--|;|%|[rRbBuUfF]{0,2}(?:\"\"\"|''')|REM )")
_BLOCK_MARK = re.compile(r"\"\"\"|'''|(?<!\S)/\*{1,2}(?=\s|\Z)|\*/|<!--|-->")
_KEY = re.compile(r"(?:- )?[\"']?[a-z_][\w./ -]{0,40}[\"']?:(?:\s+(\S.*))?\Z")
"""A key of YAML or the like, which begins with a small letter, unlike most fields of forms, and its value."""
_NESTING = re.compile(r":[ \t\r]*\n[ \t]*(?:- |[\"']?[a-z_][\w./-]*[\"']?:)")
_SIGNS = (*"{}[]<>=_\\|&$", "::", "()")
_CALL, _DOTTED = re.compile(r"\((?<=\w\()"), re.compile(r"\.(?<=[a-z]\.)[a-z]\w*[.(]")
"""Calls and dotted names, by patterns that begin with a literal, which is quick to find."""
_DOUBLE_QUOTED = r'[^"\\\n]*+(?:(?:\\.)++[^"\\\n]*+)*+'
_SINGLE_QUOTED = _DOUBLE_QUOTED.replace('"', "'")
LITERAL = re.compile(
    rf"""
      \"\"\"[\s\S]*?(?:\"\"\"|\Z) | '''[\s\S]*?(?:'''|\Z) | (?<!\S)/\*[\s\S]*?(?:\*/|\Z) | <!--[\s\S]*?(?:-->|\Z)
    | (?<![:\w])//[^\n]* | (?<![\w&$\[{{])\#(?!\[)[^\n]* | (?:(?<=\s)|(?<![\s\S]))--\ [^\n]*
    | "{_DOUBLE_QUOTED}" | '{_SINGLE_QUOTED}' | `[^`\n]*`
    """,
    re.VERBOSE,
)
"""A string or a comment of code, in a text of :func:`hide_unclosed_marks`."""
_UNCLOSED_DOUBLE = re.compile(rf'(?:^|(?<!\\)"){_DOUBLE_QUOTED}(?!")', re.MULTILINE)
_UNCLOSED_SINGLE = re.compile(rf"(?:^|(?<!\\)'){_SINGLE_QUOTED}(?!')", re.MULTILINE)
_VALUE = re.compile(r"^[ \t+-]*[\w .\"'-]{1,40}?[:=][ \t]+(\S[^\n]*)", re.MULTILINE)
_PROSE_WORDS = 12  # of a string that is prose
_RUN_ON = 2  # lines that look like prose in an indented block, before it ends

_COUNTING = frozenset(
    "SECRET EMAIL_ADDRESS PHONE_NUMBER FINANCIAL_ID GOVERNMENT_ID GENERIC_ID DEVICE_ID VEHICLE_ID ONLINE_ID "
    "STREET_ADDRESS POSTAL_CODE LOCATION_COORDINATES DATE_OF_BIRTH TERM".split()
)
"""Labels that count in technical text where a rule or a list found them."""
_SAME_EVERYWHERE = ("URL", "EMAIL_ADDRESS", "PHONE_NUMBER")
_NOT_COUNTING = frozenset("UUID DOMAIN_NAME".split())
_SHAPED = ("PERSON", "ORGANIZATION", "LOCATION")
_OWN = ("lexicon:dictionary", "lexicon:metadata", "gateway:", "languages", "column", IN_PATH)
_SURE_NAME, _LIKELY_NAME, _SURE_PLACE = 0.5, 0.2, 0.8
"""Scores that a name needs in code, in its strings and comments, and that any other name needs there."""
_GLUE_BEFORE = frozenset("._$@/\\#&*-<")
_GLUE_AFTER = frozenset("_([{=/\\")
_PREFIXES = ("Mc", "Mac", "De", "Di", "Du", "La", "Le", "Van", "Von", "Fitz", "O", "D", "El", "Al")
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+.*|[A-Za-z_]\w*\(.*|[A-Za-z_]*|[a-z_]+[\])}]*|None|null")
_LEAD = re.compile(r"(?:[a-z]+ )+(?=[A-Z])")
_TOKEN = 16  # characters of a part of a token
_DUMMY = re.compile(
    r"(?i)your|example|placeholder|change.?me|replace|dummy|insert|redacted|secret.?here|todo|x{4,}|\*{3,}|<|\$\{|\.\.\."
)
_DUMMY_PHONE = re.compile(r"\D*555\D*01\d\d\D*\Z|[\s\S]*\D555\D?01\d\d\Z")
_RESERVED_HOST = re.compile(
    r"(?i)(?:\A|[/@.])(?:example\.(?:com|org|net|edu)|localhost|[\w-]+\.(?:example|test|invalid|localhost|local))(?=[:/?#]|\Z)"
)
_LOCAL_ADDRESS = re.compile(r"(?:127\.|0\.|255\.|169\.254\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|::1?\Z)")
_SLICED = re.compile(r"[\w)\]]\[\Z")
"""What stands before the bounds of a slice, which may look like an address: ``lines[1::2]``."""
_DIGEST = re.compile(
    r"(?i)\b(?:[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,128})\b"
)
_HOST = re.compile(r"(?i)(?:[a-z][a-z+.-]*://)?(?:[^@/]*@)?([^/:?#]+)")
_PLACEHOLDER_MAILBOXES = read_word_list("placeholder_mailboxes")
_PUBLIC_HOSTS = read_word_list("public_hosts")
_FUNCTION = read_word_list("function_words")
_TECHNICAL_WORDS = read_word_list("technical_words")


@cache
def _compile_lines(name: str) -> re.Pattern[str]:
    """Compile a list of patterns of ``technical.toml`` into one."""
    data = tomllib.loads(files("allonym.detection").joinpath("technical.toml").read_text(encoding="utf-8"))
    pattern = "|".join(data["lines"][name])
    for fragment, meaning in data["fragments"].items():
        pattern = pattern.replace(f"<<{fragment}>>", meaning)
    return re.compile(pattern, re.MULTILINE)


@remember_texts(4)
def hide_unclosed_marks(text: str) -> str:
    """Return a text with dots for the escaped quotation marks behind the last mark of their line that is not escaped.

    None of them begins a string. To find that out at each of them would take quadratic time.
    """
    if '\\"' in text:
        text = _UNCLOSED_DOUBLE.sub(lambda m: m[0].replace('\\"', "\\."), text)
    if "\\'" in text:
        text = _UNCLOSED_SINGLE.sub(lambda m: m[0].replace("\\'", "\\."), text)
    return text


def is_log_line(line: str) -> bool:
    """Tell whether a line is an entry of a log."""
    return _compile_lines("logged").match(line) is not None


@cache
def _compile_line_finder() -> re2._Regexp:
    """Compile a quick pattern for the lines that may be code: it matches all of them, and a few others.

    It stays within a line, where blanks may follow, and cannot look around.
    """
    pattern = f"{_compile_lines('sure').pattern}|{_compile_lines('likely').pattern}"
    for exact, wider in (("(?<= )", ""), (r"(?!s\))", ""), ("[^", r"[^\n"), (r"\s*", r"[ \t]*"), (r"\s+", r"[ \t]+")):
        pattern = pattern.replace(exact, wider)
    pattern = re.sub(r"\$(?=[|)]|\Z)", r"[ \\t\\r]*$", pattern)
    return compile_pattern(rf"(?m)^[ \t]*(?:{pattern})")


@remember_texts(16)
def find_technical_passages(text: str) -> tuple[Interval, ...]:
    """Find the technical passages of a text, sorted and disjoint."""
    if not _has_signs(text) and "`" not in text and ":\n" not in text:
        return ()
    fenced = _find_fenced_blocks(text) if "```" in text else ()
    passages = merge_intervals([*fenced, *_find_blocks(text)])
    blocks = Reach(passages)
    if "`" in text or "](" in text:
        passages += [m.span() for m in _INLINE.finditer(text) if not blocks.touches(*m.span())]
    if "</" in text:
        passages += [m.span() for m in _TAG.finditer(text)]
    merged = merge_intervals(passages)
    prose = list(_find_prose_strings(text, merged))
    return tuple(part for passage in merged for part in subtract_intervals(passage, prose))


def _has_signs(text: str) -> bool:
    """Whether a text has signs that are more frequent in code than in prose."""
    if any(map(text.__contains__, _SIGNS)):
        return True
    return ("(" in text and _CALL.search(text) is not None) or _DOTTED.search(text) is not None


def _find_fenced_blocks(text: str) -> Iterator[Interval]:
    """The fenced blocks that name a language of code, each from its first fence to the end of its last."""
    opening: re.Match[str] | None = None
    for fence in FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif not fence[1]:
            if opening[1] and opening[1].lower() not in _UNCODED:
                yield opening.start(), fence.end()
            opening = None


def _find_prose_strings(text: str, passages: Sequence[Interval]) -> Iterator[Interval]:
    for start, end in passages:
        for literal in LITERAL.finditer(hide_unclosed_marks(text), start, end):
            surface = text[literal.start() : literal.end()]
            if surface[0] in "\"'" and surface[:3] not in ('"""', "'''") and _is_prose(surface):
                yield literal.start() + 1, literal.end() - 1


def _is_prose(string: str) -> bool:
    words = string.split()
    plain = sum(word.strip(".,;:!?()'\"").isalpha() for word in words)
    return plain >= _PROSE_WORDS and plain > 0.8 * len(words)


def _find_blocks(text: str) -> Iterator[Interval]:
    """Find runs of lines that are code, log entries or data."""
    data = encode_text(text)
    likely = {groups[0][0] for groups in find_matches(_compile_line_finder(), text, data)}
    if not likely and not _NESTING.search(text):
        return
    run = _Run()
    matches = list(_LINE.finditer(text))
    lines = [(m.start(), m.end(), _shorten(m[0].strip())) for m in matches]
    indents = [len(m[0]) - len(m[0].lstrip(" \t")) for m in matches]
    for number, (start, end, line) in enumerate(lines):
        strength = 2 if _opens_nesting(lines, indents, number) else _measure_strength(line) if start in likely else 0
        yield from run.add(start, end, line, indents[number], strength)
    yield from run.close()


def _measure_strength(line: str) -> int:
    return 2 if _compile_lines("sure").match(line) else int(bool(_compile_lines("likely").match(line)))


def _shorten(line: str) -> str:
    """The beginning and the end of a line, so that no line takes long."""
    return line if len(line) <= 400 else line[:300] + line[-100:]


def _opens_nesting(lines: Sequence[tuple[int, int, str]], indents: Sequence[int], number: int) -> bool:
    """Whether a line is a key of YAML whose value is on indented lines, with keys or items of a list."""
    key = _KEY.match(lines[number][2])
    if key is None or key[1] or number + 1 == len(lines):
        return False
    following = lines[number + 1][2]
    deeper = indents[number + 1] > indents[number]
    is_key = _KEY.match(following) is not None
    return (deeper and is_key) or (following.startswith("- ") and (deeper or is_key))


class _Run:
    """Lines that may become a passage."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.start = self.end = -1  # of the lines known to be code
        self.strength = 0
        self.lead = -1  # where comments before them begin
        self.lead_is_block = False
        self.prose = 0  # lines in a row that look like prose
        self.blanks = 0
        self.block = ""  # the mark that ends the comment or string which is open

    def add(self, start: int, end: int, line: str, indent: int, strength: int) -> Iterator[Interval]:
        """Add a line that is code for sure (strength 2), likely (1) or not by itself (0); yield the passage it ends."""
        if self.block:
            if self.block in line:
                self.block = ""
            if self.start >= 0:
                self.end = end
            return
        if not line:
            self.blanks += 1
            return
        is_marked = _has_signs(line)
        is_comment = not strength and bool(_COMMENT.match(line))
        is_key = bool(_KEY.match(line))
        if strength:
            if self.start < 0:
                self.start = self.lead if self.lead >= 0 else start
            self.end = end
            self.strength += strength
            self.prose = 0
        elif self.start < 0 and (is_comment or is_key):
            if self.lead < 0 or (self.blanks > 1 and not self.lead_is_block):
                self.lead = start
            self.lead_is_block = self.lead_is_block or bool(_BLOCK_MARK.match(line))
        elif is_comment or is_marked or is_key or (indent and self.start >= 0):
            self.prose = 0 if is_comment or is_marked or (is_key and indent) else self.prose + 1
            if self.start >= 0 and not self.blanks and self.prose <= _RUN_ON:
                self.end = end
            elif self.start < 0:
                self.lead = -1
        else:
            yield from self.close()
        self.blanks = 0
        self._open_block(line, strength or is_comment)

    def _open_block(self, line: str, is_code: int) -> None:
        if not is_code:
            return
        marks = _BLOCK_MARK.findall(line)
        if marks and (len(marks) % 2 or marks[-1] in ("/*", "<!--")):
            ends = {"/*": "*/", "<!--": "-->", '"""': '"""', "'''": "'''"}
            self.block = ends.get(marks[-1], "")

    def close(self) -> Iterator[Interval]:
        """Yield the passage, if the lines are one, and begin anew."""
        if self.strength > 1:
            yield self.start, self.end
        self._reset()


def drop_technical_noise(
    text: str, candidates: Sequence[Span], taxonomy: Taxonomy, *, changes_dates: bool = False
) -> list[Span]:
    """The candidates that lie outside of technical passages, or identify in them.

    A candidate of the latter is cut to the string or the comment in which it begins. Where the policy
    ``changes_dates``, time stamps count too, so that they change with the other dates.
    """
    passages = find_technical_passages(text) if candidates else ()
    if not passages:
        return list(candidates)
    reader = _PassageReader(text, passages, taxonomy, _COUNTING | {"DATE_TIME"} if changes_dates else _COUNTING)
    findings: list[Span] = []
    unsure: list[Span] = []  # addresses that count in the passages if they count beside them
    for span in candidates:
        if (finding := reader.read(span)) is not None:
            findings.append(finding)
        elif span.label in _SAME_EVERYWHERE:
            unsure.append(span)
    addresses = {text[s.start : s.end] for s in findings if s.label in _SAME_EVERYWHERE}
    return findings + [span for span in unsure if text[span.start : span.end] in addresses]


class _PassageReader:
    def __init__(self, text: str, passages: Sequence[Interval], taxonomy: Taxonomy, counting: frozenset[str]) -> None:
        self._text = text
        self._taxonomy = taxonomy
        self._counting = counting
        self._passages = Reach(passages)
        literals: list[Interval] = []
        for start, end in passages:
            literals += [m.span() for m in LITERAL.finditer(hide_unclosed_marks(text), start, end)]
            literals += [m.span(1) for m in _VALUE.finditer(text, start, end)]
            literals += [m.span() for m in _compile_lines("logged").finditer(text, start, end)]
        self._literals = Reach(literals)
        self._digests = Reach(m.span() for start, end in passages for m in _DIGEST.finditer(text, start, end))
        self._identifiers = frozenset(word for start, end in passages for word in IDENTIFIER.findall(text[start:end]))

    def read(self, span: Span) -> Span | None:
        """The span as it counts, or None where it does not."""
        if span.source.startswith(_OWN):
            return span
        lineage = self._taxonomy.lineage(span.label)
        if not self._passages.contains(span.start, span.end):
            return None if span.source == TAGGER and self._is_of_trade(span, lineage[-1]) else span
        if any(label in _SHAPED for label in lineage) and not any(label in _COUNTING for label in lineage):
            return self._read_name(span, lineage[-1])
        if span.source == TAGGER and "STREET_ADDRESS" in lineage and span.score >= _SURE_PLACE:
            span = self._cut_to_string(span)
            return span if self._literals.contains(span.start, span.end) else None
        if span.source == TAGGER or span.source.startswith("speakers") or not self._counting.intersection(lineage):
            return None
        if _NOT_COUNTING.intersection(lineage):
            return None
        if "SECRET" not in lineage and self._digests.contains(span.start, span.end):
            return None
        return None if self._is_documented(span, lineage) else span

    def _is_of_trade(self, span: Span, family: str) -> bool:
        """Whether a finding beside technical passages is a product, or a name or a word of what they are about."""
        if family == "PRODUCT":
            return True
        if family not in ("PERSON", "ORGANIZATION", "OCCUPATION", "WORK_OF_ART"):
            return False
        words = self._text[span.start : span.end].strip("#*`_ ").split()
        if all(_is_technical_word(word) or (word.isupper() and len(words) > 1) or word[0].isdigit() for word in words):
            return True
        if any(_is_camel(word) and not _is_known_name(word) for word in (word.strip(",.;:") for word in words)):
            return True
        return len(words) == 1 and words[0].islower() and words[0] in self._identifiers

    def _read_name(self, span: Span, family: str) -> Span | None:
        text = self._text
        span = self._cut_to_string(span)
        if family == "PERSON" and (lead := _LEAD.match(text, span.start, span.end)):
            particles = [word for word in lead[0].split() if word in PARTICLES]
            span = span if particles else replace(span, start=lead.end())
        start, end = span.start, span.end
        surface = text[start:end]
        words = surface.split()
        if not words or _is_glued(text, start, end):
            return None
        if family != "PERSON":
            is_title = all(is_name_word(word) or word.isupper() or word in ("of", "and", "&", "the") for word in words)
            sure = span.score >= _SURE_PLACE and is_title and not _is_technical_word(surface)
            return span if sure and self._literals.contains(start, end) and not surface.isupper() else None
        if span.source.startswith("speakers") and len(words) == 1:
            return None
        plain = [word.strip(".,;:!?()[]\"'").removesuffix("'s") for word in words]
        if any(not word or any(c.isdigit() or c in "_=<>{}[]()/\\|@:" for c in word) for word in plain):
            return None
        technical = [_is_technical_word(word) for word in plain]
        if all(technical) or any(_is_camel(word) for word in plain):
            return None
        first = plain[0]
        if len(plain) == 1:
            is_known = is_name_word(first) and not technical[0] and _is_known_name(first)
            return span if is_known and span.score >= _SURE_NAME and self._literals.contains(start, end) else None
        shaped = all(is_name_word(word) or word.lower() in PARTICLES for word in plain)
        likely = span.score >= (_LIKELY_NAME if self._literals.contains(start, end) else _SURE_NAME)
        if shaped and (likely or _is_known_given_name(first)) and not any(technical):
            return span
        if not any(technical) or shaped:
            return span if _is_known_given_name(first) and self._literals.contains(start, end) else None
        return None

    def _cut_to_string(self, span: Span) -> Span:
        """The span as far as it lies in the string in which it begins."""
        text = self._text
        start, end = span.start, span.end
        for position in range(start, end):
            if text[position] in '"`\n' or text[position : position + 2] in ("\\n", "\\t", "*/"):
                if any(map(str.isalnum, text[start:position])):
                    end = position
                    break
                start = position + 1
        while start < end and not text[start].isalnum():
            start += 1
        while end > start and not (text[end - 1].isalnum() or text[end - 1] == "."):
            end -= 1
        return replace(span, start=start, end=end) if start < end else span

    def _is_documented(self, span: Span, lineage: Sequence[str]) -> bool:
        """Whether a finding is a placeholder of documentation, a local address, or a public site."""
        surface = self._text[span.start : span.end]
        if "EMAIL_ADDRESS" in lineage:
            mailbox = surface.rpartition("@")[0].rpartition("=")[2].lower()
            is_reserved = bool(_RESERVED_HOST.search(surface))
            return mailbox in ("", "git") or (is_reserved and mailbox in _PLACEHOLDER_MAILBOXES)
        if "PHONE_NUMBER" in lineage:
            return bool(_DUMMY_PHONE.match(surface))
        if "IP_ADDRESS" in lineage:
            is_version = self._text.endswith(("/", "v", "==", ">=", "~=", "<="), 0, span.start)
            return (
                is_version
                or bool(_LOCAL_ADDRESS.match(surface))
                or bool(_SLICED.search(self._text, max(0, span.start - 2), span.start))
            )
        if "CONNECTION_STRING" in lineage:
            return False
        if "USER_NAME" in lineage:
            if "user-name-shape" in span.source and not self._literals.contains(span.start, span.end):
                return True
            return self._text[span.end : span.end + 1] == "(" or self._text.endswith("= ", 0, span.start)
        if "SECRET" in lineage:
            return bool(_DUMMY.search(surface)) or _is_expression(self._text, span)
        if "SOCIAL_HANDLE" in lineage:
            return "context" not in span.source
        if "URL" in lineage:
            host = _HOST.match(surface)
            name = host[1].lower().removeprefix("www.") if host else ""
            if _LOCAL_ADDRESS.match(name):
                return True
            is_public = any(name == host or name.endswith("." + host) for host in _PUBLIC_HOSTS)
            return is_public or "." not in name or bool(_RESERVED_HOST.search(surface)) or "://" not in surface
        return surface.startswith("0x")


def _is_expression(text: str, span: Span) -> bool:
    """Whether a secret is code that reads it: a call, a variable, a type."""
    surface = text[span.start : span.end]
    if text[span.start - 1 : span.start] in ("'", '"'):
        return False
    return not _is_token(surface) and bool(_EXPRESSION.fullmatch(surface))


def _is_token(surface: str) -> bool:
    """Whether a part between dots is longer and more mixed than a name of code: "eyJhbGciOiJIUzI1NiJ9"."""
    parts = re.split(r"[^\w-]", surface)
    return any(
        len(part) >= _TOKEN
        and any(map(str.isdigit, part))
        and any(map(str.isupper, part))
        and any(map(str.islower, part))
        for part in parts
    )


def is_name_word(word: str) -> bool:
    """Whether a word is written like a part of a name: ``Ada``, ``O'Brien``, ``McAllister``, ``J.``."""
    bare = word.strip(".,;:!?()\"'")
    if not bare or bare[0].islower() or not bare[0].isalpha() or any(c.isdigit() or c == "_" for c in bare):
        return False
    return len(bare) == 1 or (not bare.isupper() and not _is_camel(bare))


def _is_camel(word: str) -> bool:
    for position in range(1, len(word)):
        if word[position].isupper() and word[position - 1] not in "-'’":
            if word.isupper() or word[:position] in _PREFIXES:
                continue
            return True
    return False


def _is_technical_word(word: str) -> bool:
    lower = word.lower()
    is_ordinary = lower in _TECHNICAL_WORDS or lower in _FUNCTION or lower in read_ordinary_words()
    return is_ordinary or (lower in read_common_terms() and lower not in read_common_terms("also_names"))


def _is_known_name(word: str) -> bool:
    return bool(KnowledgeBase.open().name_facts(word))


def _is_known_given_name(word: str) -> bool:
    return any(fact.part == "first" for fact in KnowledgeBase.open().name_facts(word))


def _is_glued(text: str, start: int, end: int) -> bool:
    """Whether signs of code join a surface to what stands beside it."""
    before, first, second = text[start - 1 : start], text[end : end + 1], text[end + 1 : end + 2]
    if before in _GLUE_BEFORE or before.isalnum() or first in _GLUE_AFTER or first.isalnum():
        return True
    return first + second == "::" or (first == "." and second.isalpha())
