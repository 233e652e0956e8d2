"""Scans of our own making, straight and turned, clean and noisy: what OCR reads, what is covered, and at what cost.

    python benchmarks/scans.py [--pages N] [--pictures FOLDER]

Each page is drawn, scanned at 150 and 300 dots per inch, straight or turned, with noise or blur, and anonymised with
the default policy. "Read" is the share of the page's words that the OCR reads; "covered" the share of the identifying
words that the same OCR cannot read in the result; "kept" the share of the others that it still reads there. Prints a
row for each kind of scan and, last, a line of JSON.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pypdfium2
from PIL import Image, ImageFilter
from reportlab.lib.pagesizes import A4

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.pdf_pages import canvas, lines

PAGES = (
    (
        ("Margaret Hollis", "Daniel Okafor", "margaret.hollis@example.org", "020 7946 0958", "Tomasz Wolski"),
        "Dear Ms Hollis, thank you for your letter of last week. Margaret Hollis and Daniel Okafor met twice about the "
        "lease, and Daniel Okafor promised to write to margaret.hollis@example.org before the end of the month. Please "
        "call 020 7946 0958 if nothing has come by then. The keys are with Tomasz Wolski, who lives next door and "
        "waters the plants. We hope that the roof will be finished before the winter and remain at your service.",
    ),
    (
        ("Sabine Krüger", "Jürgen Weiß", "DE89 3704 0044 0532 0130 00", "0171 2345678"),
        "Sehr geehrte Frau Krüger, hiermit bestätigen wir den Eingang Ihrer Zahlung. Sabine Krüger hat den Betrag von "
        "dem Konto DE89 3704 0044 0532 0130 00 überwiesen. Bei Fragen wenden Sie sich bitte an Jürgen Weiß, den Sie "
        "unter 0171 2345678 erreichen. Die Rechnung legen wir diesem Schreiben noch einmal bei, weil die erste auf dem "
        "Weg verloren gegangen ist. Mit freundlichen Grüßen aus dem Büro.",
    ),
    (
        ("Étienne Lefèvre", "Chloé Marchand", "etienne.lefevre@example.fr", "06 12 34 56 78"),
        "Madame, Monsieur, nous avons bien reçu votre demande. Étienne Lefèvre vous rappellera demain au numéro "
        "06 12 34 56 78. Vous pouvez aussi écrire à etienne.lefevre@example.fr ou passer au bureau, où Chloé Marchand "
        "vous recevra sans rendez-vous. Le dossier est complet et la réponse vous parviendra sous huit jours. Nous "
        "vous prions d'agréer nos salutations distinguées.",
    ),
)
"""Identifying texts, and the page that has them; names, numbers and addresses are invented."""

KINDS = {
    "300 dpi, straight": (300, 0.0, 0, 0.0),
    "300 dpi, turned 1.5": (300, 1.5, 6, 0.0),
    "150 dpi, straight": (150, 0.0, 0, 0.0),
    "150 dpi, turned 0.7": (150, 0.7, 8, 0.0),
    "150 dpi, turned -2": (150, -2.0, 8, 0.0),
    "150 dpi, noise, blur": (150, 0.4, 24, 0.8),
}
"""Name to resolution, angle in degrees, noise and blur."""


def scan_page(text: str, dpi: int, angle: float, noise: int, blur: float, seed: int) -> Any:
    """Return a page as a scanner sees it."""
    data = canvas(lambda c: (c.setFont("Times-Roman", 12), lines(c, textwrap.wrap(text, 78))), A4)
    page = pypdfium2.PdfDocument(data)[0].render(scale=dpi / 72).to_pil().convert("L")
    page = page.rotate(angle, resample=Image.Resampling.BICUBIC, fillcolor=255)
    if blur:
        page = page.filter(ImageFilter.GaussianBlur(blur))
    if noise:
        source = random.Random(seed)
        grain = Image.frombytes("L", page.size, source.randbytes(page.width * page.height))
        grain = grain.point(lambda v: 255 - v * 2 * noise // 255)
        page = Image.blend(page, Image.composite(page, grain, page.point(lambda v: 255 if v < 128 else 0)), 0.9)
    return page.convert("RGB")


def list_words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", text.lower()))


def share(wanted: Counter[str], present: Counter[str]) -> float:
    """Return the share of wanted words that are present."""
    return sum((wanted & present).values()) / max(1, sum(wanted.values()))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=len(PAGES), help="number of pages of each kind")
    parser.add_argument("--pictures", type=Path, help="folder for the results")
    options = parser.parse_args(argv)
    from allonym.errors import DataError
    from allonym.files import anonymize_path
    from allonym.files.verify.recognized import read_recognized_texts
    from allonym.policy import Policy

    policy = Policy.load("default")
    rows: dict[str, dict[str, float]] = {}
    print(f"{'scan':22} {'read':>8} {'covered':>8} {'kept':>8} {'refused':>8} {'cpu s':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, (dpi, angle, noise, blur) in KINDS.items():
            sums: Counter[str] = Counter()
            treated = 0
            for number, (secrets, text) in enumerate(PAGES[: options.pages]):
                source, target = Path(folder) / "a.png", (options.pictures or Path(folder)) / f"{kind} {number}.png"
                picture = io.BytesIO()
                scan_page(text, dpi, angle, noise, blur, number).save(picture, "PNG", dpi=(dpi, dpi))
                source.write_bytes(picture.getvalue())
                secret, every = list_words(" ".join(secrets)), list_words(text)
                secret = Counter({word: every[word] for word in secret})
                ((_, before),) = read_recognized_texts(source.read_bytes(), "rapidocr")
                sums["read"] += share(every, list_words(before))
                start = time.process_time()
                try:
                    anonymize_path(source, target, policy, overwrite=True)
                except DataError:
                    sums["refused"] += 1
                    continue
                sums["seconds"] += time.process_time() - start
                ((_, after),) = read_recognized_texts(target.read_bytes(), "rapidocr")
                sums["covered"] += 1 - share(secret, list_words(after))
                sums["kept"] += share(every - secret, list_words(after))
                treated += 1
            row = {name: sums[name] / max(1, treated) for name in ("covered", "kept", "seconds")}
            rows[kind] = {"read": sums["read"] / options.pages, **row, "refused": sums["refused"]}
            shares = " ".join(f"{rows[kind][name]:8.1%}" for name in ("read", "covered", "kept"))
            print(f"{kind:22} {shares} {rows[kind]['refused']:8.0f} {rows[kind]['seconds']:7.1f}", flush=True)
    print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
