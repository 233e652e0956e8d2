"""Write docs/examples.md: thirty texts before, after, rewritten, and restored, and thirty before and after.

    python docs/build_examples.py            # write it
    python docs/build_examples.py --check    # fail where it is out of date

The texts are in docs/examples/texts.toml. The rewriters below imitate how people and language models rewrite a text.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

from allonym import Anonymized, Policy, anonymize, restore
from allonym.policy import TermList

HERE = Path(__file__).parent
KEY = b"the key of the documentation's examples"
Piece = tuple[str, str]
"""A piece of text and the label of the mention that it replaces; the label is empty between mentions."""


def pieces(text: str, made: Anonymized) -> list[Piece]:
    """Split the anonymised text at its replacements."""
    out: list[Piece] = []
    at = 0
    for edit in made.plan.edits:
        out += [(text[at : edit.start], ""), (edit.replacement, edit.label if edit.entity else "")]
        at = edit.end
    return [*out, (text[at:], "")]


def everywhere(change: Callable[[str], str]) -> Callable[[list[Piece]], str]:
    return lambda parts: change("".join(text for text, _ in parts))


def mentions(change: Callable[[str, str], str]) -> Callable[[list[Piece]], str]:
    return lambda parts: "".join(change(text, label) if label else text for text, label in parts)


def last_name(text: str, label: str) -> str:
    words = text.split()
    return words[-1] if label == "PERSON" and len(words) > 1 and words[-1].isalpha() else text


def first_initials(text: str, label: str) -> str:
    words = text.split()
    if label != "PERSON" or len(words) < 2 or words[0].endswith("."):
        return text
    return " ".join([f"{w[0]}." for w in words[:-1]] + words[-1:])


def shortened(text: str, label: str) -> str:
    words = text.split()
    return words[0] if label in ("PERSON", "ORGANIZATION") and len(words[0]) > 3 else text


def typo(text: str, label: str) -> str:
    return text[:3] + text[4:] if label == "PERSON" and len(text) > 7 and text.isalpha() else text


def possessive(text: str, label: str) -> str:
    return f"{text}’s team" if label in ("PERSON", "ORGANIZATION") else text


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!]) +(?=[A-Z0-9\"<\[])", text)


def hyphenated(text: str) -> str:
    return re.sub(r"\b([A-Z][a-z]{3})([a-z]{3,})\b", r"\1-\n\2", text)


def american_dates(text: str) -> str:
    return re.sub(r"\b(\d{1,2}) ([A-Z][a-z]+) (\d{4})\b", r"\2 \1, \3", text)


REWRITERS: dict[str, Callable[[list[Piece]], str]] = {
    "none": everywhere(lambda t: t),
    "upper": everywhere(str.upper),
    "lower": everywhere(str.lower),
    "title case": everywhere(lambda t: re.sub(r"[^\W\d_]+('s)?", lambda m: m[0][:1].upper() + m[0][1:].lower(), t)),
    "markdown": everywhere(lambda t: re.sub(r"([\[\]_*<>#-])", r"\\\1", t)),
    "html": everywhere(lambda t: f"<p>{html.escape(t)}</p>"),
    "json": everywhere(lambda t: json.dumps({"answer": t}, ensure_ascii=False)),
    "wrapped": everywhere(lambda t: textwrap.fill(t, 34)),
    "line ends": everywhere(hyphenated),
    "no brackets": everywhere(lambda t: re.sub(r"[<>\"\[\]]", "", t)),
    "quotes": mentions(lambda t, label: f"“{t}”"),
    "possessive": mentions(possessive),
    "last names": mentions(last_name),
    "initials": mentions(first_initials),
    "shortened": mentions(shortened),
    "typos": mentions(typo),
    "genitive": mentions(lambda t, label: t if label != "PERSON" or t.endswith("s") else f"{t}s"),
    "regrouped": mentions(lambda t, label: t.replace(" ", "") if any(c.isdigit() for c in t) else t),
    "other dates": everywhere(american_dates),
    "reordered": everywhere(lambda t: " ".join(reversed(sentences(t)))),
    "list": everywhere(lambda t: "\n".join(f"- {s}" for s in sentences(t))),
    "summary": everywhere(lambda t: "In short: " + sentences(t)[0]),
}


def page() -> str:
    """Return the page as Markdown."""
    rows = tomllib.loads((HERE / "examples" / "texts.toml").read_text(encoding="utf-8"))["text"]
    out = [
        "# Sixty examples",
        "",
        "`python docs/build_examples.py` makes this page from invented texts, with the presets of allonym.",
        "*After* is the output of `allonym anonymize`. *Rewritten* is that output after somebody changed it.",
        "*Restored* is the output of `allonym restore` with the plan. The last thirty are shown before and after only.",
    ]
    for number, row in enumerate(rows, 1):
        policy = Policy.load(row["policy"])
        if "language" in row:  # the embedded tagger reads English only, so these texts come with a list of names
            lists = tuple(TermList(label, tuple(terms)) for label, terms in row["names"].items())
            rules = tuple(name for name in policy.detectors if name != "tagger")
            policy = policy.with_(language=row["language"], detectors=rules, dictionary=lists)
        made = anonymize(row["text"], policy, key=KEY)
        shown = [("Before", row["text"]), ("After", made.text)]
        how = ""
        if "rewrite" in row:
            how = f", rewritten: {row['rewrite']}"
            rewritten = REWRITERS[row["rewrite"]](pieces(row["text"], made))
            back = restore(rewritten, plan=made.plan)
            counts = f"{back.restored} restored, {back.unknown} unknown"
            shown += [("Rewritten", rewritten), (f"Restored ({counts})", back.text)]
        out += ["", f"## {number}. {row['title']}", "", f"Policy `{row['policy']}`{how}."]
        for name, text in shown:
            out += ["", f"{name}:", "", "```text", text, "```"]
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    path = HERE / "examples.md"
    made = page()
    if not arguments.check:
        path.write_text(made, encoding="utf-8")
        return 0
    if not path.exists() or path.read_text(encoding="utf-8") != made:
        sys.stderr.write("docs/examples.md is out of date: python docs/build_examples.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
