"""Options of commands that read annotated text: format, choice of documents, parts, and settings of the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allonym.cli.options import SEED
from allonym.errors import UsageError, check_names
from allonym.settings import SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.train.backends import Setup
    from allonym.train.records import Record

Shares = tuple[float, float, float]
Parts = tuple[list["Record"], list["Record"], list["Record"]]


def _parse_shares(text: str) -> Shares:
    try:
        train, dev, test = (float(share) for share in text.split("/"))
    except ValueError:
        raise ValueError("three shares such as 80/10/10 are required") from None
    return train, dev, test


def _parse_columns(text: str) -> tuple[int, int]:
    try:
        token, tag = (int(number) for number in text.split(","))
    except ValueError:
        raise ValueError("two columns such as 0,-1 are required") from None
    return token, tag


SHARES = declare_setting(
    "80/10/10", "shares of train, dev and test; split by document", option="SHARES", parse=_parse_shares
)


class Reading(SettingGroup):
    """How annotated files are read."""

    format: str | None = declare_setting(
        None,
        "one of jsonl, conll, spacy, brat, tab or presidio; by default recognised by suffix and content",
        option="NAME",
    )
    columns: tuple[int, int] = declare_setting(
        "0,-1",
        "with --format conll: columns of the token and the tag, from 0; -1 is the last",
        option="TOKEN,TAG",
        parse=_parse_columns,
    )

    def read_records(self, files: Sequence[Path]) -> list[Record]:
        """Read the records of all files."""
        from allonym.train.records import read_records

        return [record for path in files for record in read_records(path, self.format, self.columns)]


class Selection(SettingGroup):
    """Which documents are used: the arguments of :func:`allonym.train.select.choose_records`."""

    min_ratio: float = declare_setting(0.0, "use documents with at least X entities per word", low=0, option="X")
    max_ratio: float = declare_setting(1.0, "use documents with fewer than X entities per word", low=0, option="X")
    min_words: int = declare_setting(0, "use documents of at least N words", low=0, option="N")
    max_words: int | None = declare_setting(None, "use documents of at most N words", low=1, option="N")
    first_words: int | None = declare_setting(None, "cut documents after N words", low=1, option="N")
    richest: int | None = declare_setting(
        None, "use only the N documents with the most entities per word", low=1, option="N"
    )

    def choose_records(self, records: Sequence[Record]) -> list[Record]:
        """Choose the documents."""
        from allonym.train.select import choose_records

        return choose_records(records, **vars(self))


class Training(SettingGroup):
    """What training and search share: parts, seed, labels, encoder, language, and settings of the backend."""

    dev: Path | None = declare_setting(
        None, "annotated file for choosing the epoch, instead of a part of FILE", noun="path", option="FILE"
    )
    test: Path | None = declare_setting(
        None, "annotated file for testing, instead of a part of FILE", noun="path", option="FILE"
    )
    parts: Shares = SHARES
    seed: int = SEED
    label_map: Path | None = declare_setting(
        None,
        'TOML file that maps the corpus\' labels, as NAME = ["LABEL", ...]; [] leaves spans out',
        noun="file",
        option="FILE",
    )
    own_labels: bool = declare_setting(False, "with spaCy and MITIE: learn the labels of the corpus, unmapped")
    encoder: str = declare_setting(
        "", "with the tagger: BERT encoder from which to train a new one", option="FOLDER|NAME"
    )
    base: str = declare_setting(
        "",
        "with the tagger: tagger to train further; by default, without --encoder, the shipped one, english",
        option="FOLDER|NAME",
    )
    language: str = declare_setting("en", "language of the text", option="CODE")
    set: Mapping[str, str] = declare_setting({}, "any option of the backend, such as dropout=0.2", option="NAME=VALUE")

    def make_setup(self) -> Setup:
        """Return the settings beside those of the backend.

        Raises:
            UsageError: there are two to start from.
        """
        from allonym.train.backends import Setup
        from allonym.train.labelmap import find_targets, read_label_map

        if self.encoder and self.base:
            raise UsageError("--encoder starts a new tagger, --base trains one further; give one of them")
        targets = find_targets if self.label_map is None else read_label_map(self.label_map).find_targets
        return Setup(self.encoder, self.base, self.language, targets, self.own_labels)

    def make_options(self, names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of each backend. An option that no backend has is an error."""
        from dataclasses import fields

        from allonym.train.backends import get_options_type, make_options

        field_names = {name: {f.name for f in fields(get_options_type(name))} for name in names}
        everywhere = set().union(*field_names.values())
        check_names(f"option of {' or '.join(names)}", settings, everywhere)
        values = {"seed": self.seed, "language": self.language, **settings}
        return {
            name: make_options(name, {k: v for k, v in values.items() if k in some}, further=not self.encoder)
            for name, some in field_names.items()
        }

    def split_records(self, records: Sequence[Record], reading: Reading) -> Parts:
        """Return the records for train, dev and test. A part with a file of its own is not split off.

        Raises:
            UsageError: no documents are left for training.
        """
        from allonym.train.select import split_records

        shares = (self.parts[0], 0.0 if self.dev else self.parts[1], 0.0 if self.test else self.parts[2])
        train, dev, test = split_records(records, shares, self.seed)
        dev = reading.read_records([self.dev]) if self.dev else dev
        test = reading.read_records([self.test]) if self.test else test
        if not train:
            raise UsageError("no documents are left for training; widen --parts or the choice of documents")
        return train, dev, test
