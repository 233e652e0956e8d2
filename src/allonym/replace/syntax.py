"""Quotes around replacements in data and code, so that programs can still read the text.

``"phone": [PHONE_1]`` is no JSON, and a plain scalar of YAML that begins with ``[`` is a list. In technical passages an
edit of its own puts a quotation mark before the literal or the scalar, and another behind it; so it does in a shell,
where ``<PHONE 1>`` would read a file. Within a string, the mark that would end it is escaped. INI files and logs need
no quotes and get none.

What the key alone can undo is left as it is, since these quotes could not be told from those of the text.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from allonym.detection.technical import FENCE, LITERAL, find_technical_passages, hide_unclosed_marks, is_log_line
from allonym.document import Document, Interval, Reach, merge_intervals
from allonym.plan import Edit, apply_edits
from allonym.protocol import get_traits_by_name
from allonym.replace.wording import describe_shape

QUOTE = "quote@1"

_FENCE_END = re.compile(r"\n[ \t>]*```[^\n]*\Z")
_YAML, _SQL, _CODE, _TOML, _SHELL, _OTHER = "yaml", "sql", "code", "toml", "shell", ""
_FENCED = {
    _YAML: "yaml yml",
    _SQL: "sql psql mysql sqlite",
    _TOML: "toml",
    _SHELL: "env dotenv bash sh shell zsh console",
    _OTHER: "ini cfg conf properties text log diff html xml markdown md http",
}
_GRAMMARS = {name: grammar for grammar, names in _FENCED.items() for name in names.split()}
"""Name of a fenced block's language to its grammar; all others are code."""

_SQL_LINE = re.compile(r"^[ \t]*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|VALUES|WHERE|CREATE TABLE)\b", re.MULTILINE)
_CODE_LINE = re.compile(
    r"^[ \t]*(?:(?:from|import|def|class|async|func|fn|const|let|var|val|static|final|public|private|return|package|if"
    r"|for|while|print)\b|#include|@\w|//)|[;{)]$",
    re.MULTILINE,
)
_SECTION = re.compile(r"^\[[\w.: -]+\][ \t]*$", re.MULTILINE)
_SHELL_LINE = re.compile(
    r"^(?:#!.*sh\b|(?:fi|done|esac)$|[ \t]*(?:export )?[A-Z][A-Z0-9_]*=(?!=)\S|\$ \S"
    r"|[ \t]*(?:sudo|curl|wget|docker|kubectl|git|ssh|scp|npm|psql|aws) [\w.-])",
    re.MULTILINE,
)
_SHELL_SIGNS = re.compile(r"[<>|&;()$\s*?!\"'\\]")
_NAMED_BY_STRING = re.compile(r'"[^"\n]{1,80}"[ \t]*:\s*\Z')
_MARKS = "\"'"
_BEFORE = "=:([{,<>+-*/!&|?"
_AFTER = ",;)]}:<>=&|?+*/-"
_CLOSING = "}]),"
_BARE_SETTING = re.compile(r"[ \t]*(?:export )?[\w.-]+ ?=[ \t]*\Z")
_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_NUMBER_BEGINS = "0123456789+-."
_JSON_ENDS = ("{}", "[]")
_WORD_BEFORE = len("BETWEEN")
_LOG_HEAD = 200  # characters by which a line is known for one of a log

_YAML_LINE = re.compile(
    r"""(?P<lead>[ ]*(?:-[ ]+)*)
    (?:(?P<key>"[^"\n]*"|'[^'\n]*'|[^\s\#{}\[\],&*!|>'"%@`-](?:[^\#{}\n]*?[^ \#{}\n])??
       |-[^\s\#{}\n](?:[^\#{}\n]*?[^ \#{}\n])??)
       [ ]*:(?=[ \t\r\n]|\Z)[ \t]*)?
    (?:[&!][^\s]*[ \t]+)*(?P<value>[^\n]*)""",
    re.VERBOSE,
)
_CODE_SIGNS = re.compile(r"[()=;]")
_YAML_COMMENT = re.compile(r"(?:(?<=\s)|(?<![\s\S]))#[^\n]*")
_YAML_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?\Z")
_YAML_FLOW = re.compile(
    r"""(?<=\s)\#[^\n]*|[\[\]{},]|:(?=[\s,\]}])|"(?:\\.|[^"\\])*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s\[\]{},"':](?:[^\[\]{},:\s]|\s(?!\#)|:(?=[^\s,\]}]))*"""
)
_KEY_IN_SCALAR = re.compile(r":(?=\s)|:\Z")
_INDICATORS = "[]{}&*!|>'\"%@`#,"


def keep_syntax(document: Document, edits: Sequence[Edit]) -> list[Edit]:
    """Return the sorted edits of a document, with the quotes that its technical passages need."""
    passages = _list_passages(document)
    added: list[Edit] = []
    changed = {edit.start: edit for edit in edits}
    starts = [edit.start for edit in edits]
    for start, end in passages:
        within = [e for e in edits[bisect_left(starts, start) : bisect_left(starts, end)] if _can_adapt(e, end)]
        if not within:
            continue
        grammar, start, end = _read_grammar(document.text, start, end)
        within = [edit for edit in within if start <= edit.start and edit.end <= end]
        adapt = _adapt_yaml if grammar == _YAML else _adapt_code
        for edit in adapt(document.text, start, end, within, grammar):
            if edit.operator == QUOTE:
                added.append(edit)
            else:
                changed[edit.start] = edit
    reach = Reach(passages)
    for edit in edits:
        if document.text[edit.start : edit.start + 1] not in _NUMBER_BEGINS or reach.touches(edit.start, edit.end):
            continue
        if _can_adapt(edit, len(document.text)):
            added += _quote_named_by_string(document.text, edit)
    return (
        sorted((*changed.values(), *added), key=lambda edit: (edit.start, edit.end)) if added else [*changed.values()]
    )


def _can_adapt(edit: Edit, end: int) -> bool:
    return edit.start < edit.end <= end and not get_traits_by_name(edit.operator).exact


def _list_passages(document: Document) -> list[Interval]:
    """List the technical passages that lie in one part of the document; all of a text that is JSON or YAML."""
    text = document.text
    passages = _join_around_prose(text, find_technical_passages(text))
    if not document.parts and _is_data(text, bool(passages)):
        return [(0, len(text))]
    if not document.parts or not passages:
        return passages
    parts = Reach(document.parts)
    return [passage for passage in passages if parts.contains(*passage)]


def _join_around_prose(text: str, passages: Sequence[Interval]) -> list[Interval]:
    """Join the passages between which a string of prose stands, which is a string of the code all the same."""
    out: list[Interval] = []
    for start, end in passages:
        before = out[-1][1] if out else 0
        if before and text[start] in _MARKS and text[start] == text[before - 1] and "\n" not in text[before:start]:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def _is_data(text: str, is_technical: bool) -> bool:
    stripped = text.strip()
    if stripped[:1] + stripped[-1:] in _JSON_ENDS:
        try:
            json.loads(stripped)
        except (ValueError, RecursionError):
            return False
        return True
    return (is_technical or stripped.startswith("---\n")) and is_yaml(text)


def _read_grammar(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Return the grammar of a passage, and where its code stands, without a fence or backticks around it."""
    if fence := FENCE.match(text, start, end):
        closing = _FENCE_END.search(text, fence.end(), end)
        start, end = min(fence.end() + 1, end), closing.start() if closing else end
        name = fence[1].lower()
        return (_GRAMMARS.get(name, _CODE) if name else _guess_grammar(text[start:end])), start, end
    if text[start] == "`":
        ticks = _count_at(text, start, end, "`")
        start, end = start + ticks, end - ticks
    if text[start : start + 1] in ("(", "<"):  # an address behind a link, a tag
        return _OTHER, start, end
    return _guess_grammar(text[start:end]), start, end


def _guess_grammar(code: str) -> str:
    if is_yaml(code):
        return _YAML
    if _SHELL_LINE.search(code) and not _is_toml(code):
        return _SHELL
    if _SECTION.search(code):
        return _TOML if _is_toml(code) else _OTHER
    if _CODE_LINE.search(code) or code.lstrip()[:1] in ("{", "["):
        is_query = _SQL_LINE.search(LITERAL.sub("", hide_unclosed_marks(code))) is not None
        return _SQL if is_query else _TOML if _is_toml(code) else _CODE
    if _SQL_LINE.search(code):
        return _SQL
    return _TOML if _is_toml(code) else _OTHER


def _is_toml(code: str) -> bool:
    if "=" not in code:
        return False
    try:
        tomllib.loads(code)
    except (ValueError, RecursionError):
        return False
    return True


def _escape(edit: Edit, mark: str, grammar: str) -> Edit:
    """Return an edit as it stands between two such marks; where languages disagree, with a typographic mark."""
    doubled = "''" if grammar in (_SQL, _YAML) else "’"
    return replace(edit, replacement=edit.replacement.replace(mark, '\\"' if mark == '"' else doubled))


def _quote_literal(start: int, end: int, label: str, mark: str) -> tuple[Edit, Edit]:
    return Edit(start, start, mark, label, 0, QUOTE, ""), Edit(end, end, mark, label, 0, QUOTE, "")


# JSON, TOML, SQL and programs


def _adapt_code(text: str, start: int, end: int, edits: Sequence[Edit], grammar: str) -> Iterator[Edit]:
    """Yield quotes around literals that were numbers, and edits whose replacement would end the string around it."""
    literals = merge_intervals(m.span() for m in LITERAL.finditer(hide_unclosed_marks(text), start, end))
    strings = Reach(literals)
    for edit in edits:
        if strings.touches(edit.start, edit.end):
            index = bisect_left(literals, (edit.start + 1,)) - 1
            mark = text[literals[index][0]]
            if mark in _MARKS and strings.contains(edit.start, edit.end):
                yield _escape(edit, mark, grammar)
        elif grammar == _SHELL:
            yield from _quote_word(text, edit, start, end)
        elif grammar:
            a, b = _grow_literal(text, edit.start, edit.end, start, end)
            new = text[a : edit.start] + edit.replacement + text[edit.end : b]
            if _must_become_string(text[a:b], new) and _stands_alone(text, a, b, start, end, grammar):
                mark = "'" if grammar == _SQL else '"'
                yield _escape(edit, mark, grammar)
                yield from _quote_literal(a, b, edit.label, mark)


def _quote_word(text: str, edit: Edit, low: int, high: int) -> Iterator[Edit]:
    """Yield quotes around a word of a shell in which a sign of the replacement would mean something."""
    a, b = edit.start, edit.end
    if not _SHELL_SIGNS.search(edit.replacement):
        return
    while a > low and not text[a - 1].isspace() and text[a - 1] not in "=\"'`;|&()<>":
        a -= 1
    while b < high and not text[b].isspace() and text[b] not in "\"'`;|&()<>":
        b += 1
    if text[a - 1 : a] not in ('"', "'", "`") and text[b : b + 1] not in ('"', "'", "`"):
        yield from _quote_literal(a, b, edit.label, "'" if '"' in edit.replacement else '"')


def _quote_named_by_string(text: str, edit: Edit) -> Iterator[Edit]:
    """Yield quotes around a number that a key of JSON names, in a line that is no technical passage."""
    a, b = edit.start, edit.end
    is_value = text[b : b + 1] in ("}", ",", "]", " ", "\n") and _NAMED_BY_STRING.search(text, max(0, a - 100), a)
    if is_value and _must_become_string(text[a:b], edit.replacement):
        yield from _quote_literal(a, b, edit.label, '"')


def _grow_literal(text: str, a: int, b: int, low: int, high: int) -> Interval:
    while a > low and (text[a - 1].isalnum() or text[a - 1] in "._"):
        a -= 1
    if a > low and text[a - 1] in "+-" and text[low : a - 1].rstrip()[-1:] in (*":=([{,", ""):
        a -= 1
    while b < high and (text[b].isalnum() or text[b] in "._"):
        b += 1
    return a, b


def _must_become_string(literal: str, new: str) -> bool:
    """Tell whether a literal that was a number or a date is none any more."""
    if not literal.lstrip("+-.")[:1].isdigit() or _NUMBER.fullmatch(new):
        return False
    return describe_shape(literal) != describe_shape(new) or literal[0] == "0" or new[:1] == "0"


def _stands_alone(text: str, a: int, b: int, low: int, high: int, grammar: str) -> bool:
    """Tell whether a literal is a value: of a key, an assignment, an argument, an item, a comparison."""
    line = text.rfind("\n", low, a) + 1 or low
    stop = a
    while stop > low and text[stop - 1] in " \t\r\n":
        stop -= 1
    before = text[max(low, stop - _WORD_BEFORE) : stop]
    if is_log_line(text[line : min(_find_line_end(text, b, len(text)), line + _LOG_HEAD)]):
        return False
    if before and before[-1] not in _BEFORE and not before.endswith(("return", "BETWEEN", "AND", "IN")):
        return False
    following = b + _count_at(text, b, high, " \t\r")
    rest = text[following : min(following + 2, high)]
    if rest[:1] and rest[0] in _AFTER and not rest.startswith("--"):
        return True
    if rest[:1] not in ("", "\n", "#") and not rest.startswith(("//", "--")):
        return grammar == _SQL
    closing = following + _count_at(text, following, high, " \t\r\n")
    if grammar in (_SQL, _TOML) or (closing < high and text[closing] in _CLOSING):
        return True
    is_setting = _BARE_SETTING.match(text, line, a) is not None and not text[line:a].rstrip().endswith(":=")
    if is_setting:
        return text[a - 1] == " "  # as in Python, unlike "PHONE=4158832947" of a shell
    return before[-1:] in ("=", "<", ">")


def _count_at(text: str, start: int, end: int, signs: str) -> int:
    """Count the signs of a kind that stand at a place one after the other."""
    stop = start
    while stop < end and text[stop] in signs:
        stop += 1
    return stop - start


def _find_line_end(text: str, start: int, end: int) -> int:
    stop = text.find("\n", start, end)
    return end if stop < 0 else stop


# YAML


def is_yaml(code: str) -> bool:
    """Tell whether all lines of a text are keys, items, comments or scalars of YAML, one key at least."""
    keys = 0
    for kind, _, _ in _read_yaml(code, 0, len(code)):
        if kind == "other":
            return False
        keys += kind == "key"
    return keys > 0


def _read_yaml(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the scalars of YAML in blocks as (kind, start, end): key, plain, quoted, flow; other: no YAML."""
    position = start
    has_value = False  # whether deeper lines may continue the scalar of the line above
    parent = -1
    while position < end:
        stop = _find_line_end(text, position, end)
        line = text[position:stop]
        bare = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        is_skipped = not bare or bare[0] == "#" or bare in ("---", "...") or line.startswith("%")
        if is_skipped or (has_value and indent > parent):  # the latter continues a plain scalar, or a block
            position = stop + 1
            continue
        match = _YAML_LINE.match(text, position, stop)
        assert match is not None
        has_dash = "-" in match["lead"]
        if match["key"]:
            parent = match.start("key") - position
        elif has_dash or bare == "-":
            parent = line.rindex("-", 0, max(len(match["lead"]), indent + 1))
        a = match.start("value")
        b = a + len(_YAML_COMMENT.sub("", match["value"]).rstrip())
        has_value = a < b and bare != "-"
        if match["key"] is None and not has_dash and bare != "-" and (indent == 0 or _CODE_SIGNS.search(bare)):
            yield "other", position, stop
            return
        if match["key"]:
            yield "key", *match.span("key")
        if not has_value or text[a] == "*":
            position = stop + 1
            continue
        if text[a] in "[{\"'":
            kind, find_end = ("flow", _find_flow_end) if text[a] in "[{" else ("quoted", _find_string_end)
            b = find_end(text, a, end)
            if b < 0 or text[b : _find_line_end(text, b, end)].split("#")[0].strip():
                yield "other", a, stop
                return
            yield kind, a, b
            stop = _find_line_end(text, b, end)
            has_value = False
        elif _YAML_BLOCK.match(text, a, stop):
            pass
        elif text[b - 1] in ",;{" or text[a] in "%@`&!|>":
            yield "other", a, b
            return
        else:
            b = _find_plain_end(text, b, stop, end, parent)
            if _KEY_IN_SCALAR.search(text, a, b):
                yield "other", a, b
                return
            yield "plain", a, b
        position = stop + 1


def _find_plain_end(text: str, b: int, stop: int, end: int, parent: int) -> int:
    """Find the end of a plain scalar that may go on in deeper lines."""
    while stop < end:
        following = _find_line_end(text, stop + 1, end)
        line = text[stop + 1 : following]
        if line.strip():
            if len(line) - len(line.lstrip(" ")) <= parent or line.lstrip().startswith("#"):
                break
            b = stop + 1 + len(_YAML_COMMENT.sub("", line).rstrip())
        stop = following
    return b


def _find_flow_end(text: str, start: int, end: int) -> int:
    depth = 0
    for token in _YAML_FLOW.finditer(text, start, end):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth <= 0:
            return token.end()
    return -1


def _find_string_end(text: str, start: int, end: int) -> int:
    mark = text[start]
    position = start + 1
    while position < end:
        if mark == '"' and text[position] == "\\":
            position += 1
        elif text[position] == mark:
            if mark == '"' or text[position + 1 : position + 2] != mark:
                return position + 1
            position += 1
        position += 1
    return -1


def _adapt_yaml(text: str, start: int, end: int, edits: Sequence[Edit], grammar: str) -> Iterator[Edit]:
    """Yield quotes around the scalars that need them after the edits, and edits within quotes that must be escaped."""
    starts = [edit.start for edit in edits]
    for kind, a, b in _read_yaml(text, start, end):
        if kind == "other" and text[a] in "[{":
            kind, b = "flow", _find_flow_end(text, a, end)
        within = _select_within(edits, starts, a, b)
        if not within or kind == "other":
            continue
        if kind == "flow":
            for token in _YAML_FLOW.finditer(text, a, b):
                c, d = token.start(), token.start() + len(token[0].rstrip())
                yield from _adapt_scalar(text, c, d, _select_within(edits, starts, c, d), is_flow=True)
        else:
            yield from _adapt_scalar(text, a, b, within, is_flow=False)


def _select_within(edits: Sequence[Edit], starts: Sequence[int], a: int, b: int) -> list[Edit]:
    return [edit for edit in edits[bisect_left(starts, a) : bisect_left(starts, b)] if edit.end <= b]


def _adapt_scalar(text: str, a: int, b: int, edits: Sequence[Edit], *, is_flow: bool) -> Iterator[Edit]:
    if not edits or text[a] == "#":
        return
    mark = text[a]
    if mark in _MARKS:
        yield from (_escape(edit, mark, _YAML) for edit in edits)
        return
    local = [replace(edit, start=edit.start - a, end=edit.end - a) for edit in edits]
    new = apply_edits(text[a:b], local)
    if not _needs_quotes(new, is_flow=is_flow):
        return
    mark = "'" if '"' in new or "\\" in new else '"'
    if mark == "'" and "'" in new:
        covered = Reach((edit.start, edit.end) for edit in edits)
        yield from (_escape(edit, mark, _YAML) for edit in edits)
        for position in range(a, b):
            if text[position] == "'" and not covered.touches(position, position + 1):
                yield Edit(position, position, "'", edits[0].label, 0, QUOTE, "")
    yield from _quote_literal(a, b, edits[0].label, mark)


def _needs_quotes(scalar: str, *, is_flow: bool) -> bool:
    if not scalar or scalar[0] in _INDICATORS or (scalar[0] in "-?:" and scalar[1:2] in ("", " ")):
        return True
    if is_flow and any(sign in scalar for sign in ",[]{}"):
        return True
    return ": " in scalar or " #" in scalar or scalar.endswith(":") or scalar != scalar.strip()
