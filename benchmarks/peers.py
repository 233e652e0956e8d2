"""Other tools, each behind one small function, so that ``panel.py`` can ask all of them the same questions.

    PYTHON benchmarks/peers.py NAME < TEXTS > OUTPUTS

PYTHON is the interpreter of an environment with the tool; nothing but the standard library is needed beside it. TEXTS
has one JSON object a line: id, text, and ``restore`` where the output is to be restored too. OUTPUTS begins with a line
about the run: version and settings of the tool, characters, processor and wall seconds, and seconds to be ready. Then
come a line for each text: id, text, spans (half-open code points of the original that were replaced) and, where asked
for, ``restored``: for each of :data:`EDITS` the text that the tool restores from its edited output.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

EDITS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "moved": lambda text: "Certainly. Here is the text:\n\n" + text + "\n\nShall I shorten it?",
    "Markdown": lambda text: text.replace("_", "\\_"),
    "lower case": str.lower,
}
"""What happens to a text before it is restored, by its name."""

Restore = Callable[[str], str]
Output = tuple[str, list[tuple[int, int]], "Restore | None"]
Anonymise = Callable[[str], Output]
SPACY_MODELS = ("en_core_web_lg", "en_core_web_md", "en_core_web_sm")
"""From the one that Presidio's own configuration names to what may stand in for it."""


class Peer(NamedTuple):
    """A tool.

    Attributes:
        packages: what to install; the first is the one whose version is told.
        open: makes it ready; returns its settings in words and the function that anonymises a text.
        environment: name of the environment that ``--peer`` gives; empty: allonym's own.
    """

    packages: str
    open: Callable[[], tuple[str, Anonymise]]
    environment: str


def open_allonym(policy: str) -> tuple[str, Anonymise]:
    """A preset, each text by itself; restoring from the plan of the text."""
    import allonym

    loaded = allonym.Policy.load(policy)

    def anonymise(text: str) -> Output:
        output = allonym.anonymize(text, loaded, key=b"a key only for this benchmark, 32")
        articles = {"a", "an"}
        spans = [
            (e.start, e.end)
            for e in output.plan.edits
            if not {text[e.start : e.end].lower(), e.replacement.lower()} <= articles
        ]
        return output.text, spans, lambda edited: allonym.restore(edited, plan=output.plan).text

    return f"preset {policy}", anonymise


def open_presidio(models: tuple[str, ...]) -> tuple[str, Anonymise]:
    """Presidio's analyzer and anonymizer as they are by default; its ``encrypt`` operator where a text is restored."""
    import tempfile

    import spacy
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider
    from presidio_anonymizer import AnonymizerEngine, DeanonymizeEngine, OperatorConfig

    model = next((name for name in models if spacy.util.is_package(name)), "")
    if models and not model:
        raise SystemExit(f"none of the spaCy models {', '.join(models)} is installed")
    if not model:
        folder = os.path.join(tempfile.mkdtemp(), "blank")
        spacy.blank("en").to_disk(folder)
    names = [{"lang_code": "en", "model_name": model or folder}]
    engine = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": names}).create_engine()
    analyzer, anonymizer, restorer = AnalyzerEngine(nlp_engine=engine), AnonymizerEngine(), DeanonymizeEngine()
    key = {"key": "0123456789abcdef"}

    def anonymise(text: str) -> Output:
        findings = analyzer.analyze(text, language="en")
        output = anonymizer.anonymize(text, findings)

        def restore(edited: str) -> str:
            encrypted = anonymizer.anonymize(text, findings, operators={"DEFAULT": OperatorConfig("encrypt", key)})
            for edit in EDITS.values():  # its own output, edited as this one was
                if edited == edit(output.text):
                    edited = edit(encrypted.text)
                    break
            operators = {"DEFAULT": OperatorConfig("decrypt", key)}
            return str(restorer.deanonymize(edited, encrypted.items, operators).text)

        return output.text, [(f.start, f.end) for f in findings], restore

    about = f"spaCy's {model} {version(model)}" if model else "a blank spaCy pipeline, so patterns only"
    return f"default recognizers, {about}", anonymise


def open_stella() -> tuple[str, Anonymise]:
    """stella's English pipeline, and its own function to restore from the map of a text."""
    import stella_anonymize

    pipeline = stella_anonymize.create_pipeline(language="en", warmup="lazy-regex")

    def anonymise(text: str) -> Output:
        result = pipeline.redact_text(text)
        names = result.redaction.redaction_map
        spans = [(entity.start, entity.end) for entity in result.resolved_entities]
        return result.redaction.redacted_text, spans, lambda edited: stella_anonymize.deanonymise(edited, names)

    return "language en", anonymise


def open_argus(mode: str) -> tuple[str, Anonymise]:
    """argus-redact in English; telephone numbers and mail addresses replaced, not masked, so that they come back.

    It loads its model again for every text, 0.5 s each time; here the model is loaded once.
    """
    from argus_redact import redact, restore

    if mode == "ner":
        import spacy

        spacy.load = functools.cache(spacy.load)
    config = {"phone": {"strategy": "remove"}, "email": {"strategy": "remove"}}

    def anonymise(text: str) -> Output:
        output, key, details = redact(text, lang="en", mode=mode, salt=b"s" * 32, detailed=True, config=config)
        spans = [(entity["start"], entity["end"]) for entity in details["entities"]]
        return output, spans, lambda edited: restore(edited, key, guard=False)

    model = f", spaCy's en_core_web_sm {version('en_core_web_sm')} loaded once" if mode == "ner" else ""
    return f"mode {mode}{model}, restoring without its guard", anonymise


def open_scrubadub() -> tuple[str, Anonymise]:
    """scrubadub's default detectors and that of dates of birth, for British English; nothing restores."""
    import scrubadub

    scrubber = scrubadub.Scrubber(locale="en_GB")
    scrubber.add_detector(scrubadub.detectors.DateOfBirthDetector)

    def anonymise(text: str) -> Output:
        return scrubber.clean(text), [(filth.beg, filth.end) for filth in scrubber.iter_filth(text)], None

    return "default detectors and dates of birth, en_GB", anonymise


def open_datafog() -> tuple[str, Anonymise]:
    """DataFog's regular expressions; its engines with a model want en_core_web_lg or GLiNER."""
    import datafog

    def anonymise(text: str) -> Output:
        result = datafog.redact(text, engine="regex")

        def restore(edited: str) -> str:
            for token, surface in result.mapping.items():
                edited = edited.replace(token, surface)
            return edited

        return result.redacted_text, [(entity.start, entity.end) for entity in result.entities], restore

    return "engine regex, restoring by its map", anonymise


def open_pii_anon() -> tuple[str, Anonymise]:
    """pii-anon's default profile, which is its regular expressions; its store of tokens restores."""
    from pii_anon import InMemoryTokenStore, PIIOrchestrator, ReidentificationService
    from pii_anon.types import ProcessingProfileSpec, SegmentationPlan

    store = InMemoryTokenStore()
    tool = PIIOrchestrator(token_key="a key only for this benchmark", token_store=store)
    service = ReidentificationService(store)
    profile = ProcessingProfileSpec(profile_id="default", mode="weighted_consensus", language="en")
    whole = SegmentationPlan(enabled=False)

    def anonymise(text: str) -> Output:
        result = tool.run({"text": text}, profile=profile, segmentation=whole, scope="panel", token_version=1)
        spans = [(f["span"]["start"], f["span"]["end"]) for f in result["ensemble_findings"]]
        output = result["transformed_payload"]["text"]
        return output, spans, lambda edited: _get_text(service.detokenize_text(edited, scope="panel"))

    return "profile default, engine regex-oss", anonymise


def _get_text(result: Any) -> str:
    return result if isinstance(result, str) else str(result[0])


PEERS: Mapping[str, Peer] = {
    "default": Peer("allonym", lambda: open_allonym("default"), ""),
    "textwash": Peer("allonym", lambda: open_allonym("textwash"), ""),
    "pseudonyms": Peer("allonym", lambda: open_allonym("pseudonyms"), ""),
    "Presidio, patterns": Peer("presidio-analyzer presidio-anonymizer spacy", lambda: open_presidio(()), "presidio"),
    "Presidio, spaCy": Peer(
        "presidio-analyzer presidio-anonymizer spacy", lambda: open_presidio(SPACY_MODELS), "presidio"
    ),
    "stella": Peer("stella-anonymize-core", open_stella, "stella"),
    "argus-redact, fast": Peer("argus-redact", lambda: open_argus("fast"), "argus"),
    "argus-redact, ner": Peer("argus-redact spacy", lambda: open_argus("ner"), "argus"),
    "scrubadub": Peer("scrubadub", open_scrubadub, "scrubadub"),
    "DataFog": Peer("datafog", open_datafog, "datafog"),
    "pii-anon": Peer("pii-anon", open_pii_anon, "pii-anon"),
}


def restore_edited(text: str, restore: Restore) -> dict[str, str]:
    """What comes back from an output after each of the edits; nothing where the tool gives up."""
    out = {}
    for name, edit in EDITS.items():
        try:
            out[name] = restore(edit(text))
        except Exception:  # any error of a foreign tool means that nothing came back
            out[name] = ""
    return out


def main() -> None:
    """Anonymise the texts of the standard input by the peer that the first argument names."""
    del sys.path[0]  # other benchmarks have names that a tool may want to import
    peer = PEERS[sys.argv[1]]
    rows = [json.loads(line) for line in sys.stdin]
    out = sys.stdout
    sys.stdout = sys.stderr  # what a tool prints is no output
    began = time.process_time()
    settings, anonymise = peer.open()
    anonymise(rows[0]["text"])
    ready = time.process_time() - began
    began, began_wall = time.process_time(), time.monotonic()
    outputs = [anonymise(row["text"]) for row in rows]
    head = {
        "version": version(peer.packages.split()[0]),
        "settings": settings,
        "characters": sum(len(row["text"]) for row in rows),
        "processor_s": time.process_time() - began,
        "wall_s": time.monotonic() - began_wall,
        "ready_s": ready,
    }
    out.write(json.dumps(head) + "\n")
    for row, (text, spans, restore) in zip(rows, outputs, strict=True):
        line = {"id": row["id"], "text": text, "spans": spans}
        if row["restore"] and restore is not None:
            line["restored"] = restore_edited(text, restore)
        out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
