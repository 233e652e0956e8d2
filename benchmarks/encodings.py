"""Text in other encodings than UTF-8: is it read as it is, and written as it was?

usage: python benchmarks/encodings.py FILE... [--documents 20]

FILEs and their documents are those of languages.py. Each document that has letters beyond ASCII is written in every
encoding that is usual for its language and has its letters, and read without being told which one.

refused   documents that are not taken for text
right     documents that are read letter by letter
letters   letters and digits beyond ASCII that are read as others; documents of another length count with all of theirs
written   documents that have the same bytes when they are written again

Prints a row for each encoding and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.languages import make_documents

from allonym.errors import DataError
from allonym.files.encoding import decode_file

WEST, EAST = "cp1252 iso8859-15 mac_roman cp850 utf-16-le", "cp1250 iso8859-2 cp852 utf-16-le"
USUAL = dict.fromkeys("da de es fi fr nb nl nn no pt sv".split(), WEST)
USUAL |= dict.fromkeys("hr hu pl ro sk sl".split(), EAST)
USUAL |= {"et": "cp1257 cp1252", "ru": "cp1251 koi8_r iso8859-5 cp866", "sr": EAST}
USUAL |= {"ko": "cp949", "zh": "gb18030 big5", "ja": "cp932 euc_jp iso2022_jp", "tr": "cp1254 iso8859-9"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--documents", type=int, default=20)
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in options.files:
        language, documents = make_documents(path, options.documents)
        for codec in USUAL.get(language, "").split():
            for text, _ in documents:
                data = text.encode(codec, "ignore")
                if text.isascii() or data.decode(codec) != text:
                    continue
                name = f"{language} {codec}"
                try:
                    back, encoding = decode_file(data)
                except DataError:
                    counts[name] += Counter(documents=1, refused=1)
                    continue
                marks = [i for i, letter in enumerate(text) if not letter.isascii() and letter.isalnum()]
                wrong = [i for i in marks if len(back) != len(text) or back[i] != text[i]]
                counts[name] += Counter(
                    documents=1,
                    right=back == text,
                    letters=len(marks),
                    letters_wrong=len(wrong),
                    written=encoding.encode_file(back) == data,
                )
    names = ("documents", "refused", "right", "letters", "letters_wrong", "written")
    print(f"{'encoding':16}" + "".join(f"{name:>14}" for name in names))
    for name, count in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
        print(f"{name:16}" + "".join(f"{count[what]:14}" for what in names))
    print(json.dumps({"benchmark": "encodings", **{name: dict(count) for name, count in counts.items()}}))


if __name__ == "__main__":
    main()
