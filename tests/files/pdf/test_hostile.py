"""PDFs that are made to hurt or to hide: bombs, keys that no page needs, pictures that tell who took them."""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from allonym.errors import DataError, RefusedContent
from allonym.files import get_format, record
from allonym.files.pdf import content, objects
from allonym.files.record import Chunk, Job, anonymize_chunk
from allonym.policy import Policy, TermList

pikepdf = pytest.importorskip("pikepdf")
pytest.importorskip("pypdfium2")

POLICY = Policy.load("default").with_(detectors=("lexicon",), dictionary=(TermList("PERSON", ("Ada Brook",)),))


def pdf(change: Callable[[Any], None], text: bytes = b"BT /F1 12 Tf 72 700 Td (Dear Ada Brook,) Tj ET") -> bytes:
    file = pikepdf.new()
    file.add_blank_page(page_size=(595, 842))
    font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
    file.pages[0].obj.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=file.make_indirect(font)))
    file.pages[0].obj.Contents = file.make_stream(text)
    change(file)
    out = io.BytesIO()
    file.save(out, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return out.getvalue()


def treated(data: bytes, policy: Policy = POLICY) -> bytes:
    job = Job(policy)
    done = anonymize_chunk(get_format("pdf").parse(Chunk(data), job), job)
    assert not done.failures, done.failures
    return done.data


def everything(data: bytes) -> bytes:
    file = pikepdf.open(io.BytesIO(data))
    streams = [
        o.read_raw_bytes() + o.read_bytes() for o in file.objects if isinstance(o, pikepdf.Stream) and "/Width" not in o
    ]
    streams += [o.read_raw_bytes() for o in file.objects if isinstance(o, pikepdf.Stream)]
    return b"\n".join((data, *streams))


def in_trailer(file: Any) -> None:
    file.trailer["/Wrote"] = pikepdf.String("Cyd Dale")
    file.trailer["/Before"] = file.make_stream(b"Cyd Dale wrote it")


def in_group(file: Any) -> None:
    file.pages[0].obj.Group = pikepdf.Dictionary(S=pikepdf.Name.Transparency, Old=file.make_stream(b"Cyd Dale"))


def in_resources(file: Any) -> None:
    file.pages[0].obj.Resources.Old = file.make_stream(b"Cyd Dale")


@pytest.mark.parametrize("hide", [in_trailer, in_group, in_resources])
def test_keys_that_no_page_needs_go(hide: Callable[[Any], None]) -> None:
    data = pdf(hide)
    assert b"Cyd Dale" in everything(data)
    assert b"Cyd Dale" not in everything(treated(data))


def test_a_picture_that_is_kept_loses_what_is_told_beside_it() -> None:
    image = pytest.importorskip("PIL.Image")
    told, out = image.Exif(), io.BytesIO()
    told[0x013B] = "Cyd Dale"
    image.new("RGB", (20, 20)).save(out, "JPEG", exif=told, comment=b"Cyd Dale")

    def draw(file: Any) -> None:
        stream = file.make_stream(out.getvalue())
        stream.Type, stream.Subtype, stream.ColorSpace = map(pikepdf.Name, ("/XObject", "/Image", "/DeviceRGB"))
        stream.Width = stream.Height = 20
        stream.BitsPerComponent, stream.Filter = 8, pikepdf.Name.DCTDecode
        file.pages[0].obj.Resources.XObject = pikepdf.Dictionary(Im=stream)

    data = pdf(draw, b"q 50 0 0 50 10 10 cm /Im Do Q BT /F1 12 Tf 72 700 Td (Dear Ada Brook,) Tj ET")
    assert b"Cyd Dale" in data
    result = everything(treated(data, POLICY.with_(images="keep")))
    assert b"JFIF" in result
    assert b"Cyd Dale" not in result


def test_forms_that_show_long_texts_again_and_again_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_STEPS", 10_000)

    def nest(file: Any) -> None:
        stream = file.make_stream(b"BT /F1 12 Tf (" + b"a" * 1000 + b") Tj ET")
        stream.Type, stream.Subtype = pikepdf.Name.XObject, pikepdf.Name.Form
        stream.BBox, stream.Resources = pikepdf.Array([0, 0, 9, 9]), file.pages[0].obj.Resources
        file.pages[0].obj.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(X=stream))

    with pytest.raises(RefusedContent, match="more than 10000 operators and characters"):
        treated(pdf(nest, b"/X Do " * 20))


def packed(filters: list[str], data: bytes) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        names = pikepdf.Array([pikepdf.Name(f"/{name}") for name in filters])
        file.pages[0].obj.Contents.write(data, filter=names if len(filters) > 1 else names[0])

    return change


def lzw(count: int) -> bytes:
    """So many spaces."""
    bits, made, width, entries = f"{256:09b}{32:09b}", 1, 9, 258
    while made < count:
        bits += f"{entries:0{width}b}"
        entries, made = entries + 1, made + entries - 256
        width = 12 if entries >= 2047 else 11 if entries >= 1023 else 10 if entries >= 511 else 9
    bits += f"{257:0{width}b}"
    return int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")


FLATE = zlib.compress(b" " * (1 << 20), 9)
BOMBS = {
    "flate": (["FlateDecode"], FLATE),
    "damaged flate": (["FlateDecode"], FLATE[:-40] + b"\0" * 40),
    "ascii85": (["ASCII85Decode", "FlateDecode"], base64.a85encode(FLATE) + b"~>"),
    "hex": (["ASCIIHexDecode", "FlateDecode"], FLATE.hex().encode() + b">"),
    "lzw": (["LZWDecode"], lzw(1 << 20)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_grows_beyond_measure_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "FREE_SIZE", 1 << 17)
    with pytest.raises(DataError, match="more than 200 times its size"):
        treated(pdf(packed(*BOMBS[name])))


def test_content_in_the_guise_of_a_picture_is_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "FREE_SIZE", 1 << 17)

    def change(file: Any) -> None:
        packed(*BOMBS["flate"])(file)
        file.pages[0].obj.Contents.Subtype = pikepdf.Name.Image

    with pytest.raises(DataError, match="more than 200 times its size"):
        treated(pdf(change))


def test_the_size_of_packed_data_is_told_right() -> None:
    data = pdf(packed(["LZWDecode"], lzw(50_000)))
    file = pikepdf.open(io.BytesIO(data))
    stream = file.pages[0].obj.Contents
    whole = len(stream.read_bytes())
    assert whole >= 50_000
    assert objects.measure_unpacked_size(stream.read_raw_bytes(), ["/LZWDecode"]) == whole
    with pytest.raises(RefusedContent, match="packed twice"):
        objects.measure_unpacked_size(b"abc", ["/LZWDecode", "/FlateDecode"])


def test_bytes_after_the_end_of_packed_data_are_passed_over() -> None:
    assert objects.measure_unpacked_size(zlib.compress(bytes(100_000)) + b"\n", ["/FlateDecode"]) == 100_000


def test_what_other_packages_raise_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise AttributeError("Ada Brook")

    monkeypatch.setattr("allonym.files.pdf.editor.clean_pdf_and_list_slots", fails)
    with pytest.raises(DataError, match=r"not read \(AttributeError\)$"):
        treated(pdf(lambda _: None))


def test_a_broken_list_of_pictures_does_not_end_a_run() -> None:
    def change(file: Any) -> None:
        file.pages[0].obj.Resources.XObject = pikepdf.Dictionary(Im=7)

    job = Job(POLICY)
    done = anonymize_chunk(get_format("pdf").parse(Chunk(pdf(change)), job), job)
    assert [one.reason.partition(" (")[0] for one in done.failures] == [
        "the PDF is broken, or made in a way that is not read"
    ]
