import json
import re

from tests.report.test_html_page import EVIL, everything

from allonym.report.markdown_page import PASSAGES, ROWS, markdown
from allonym.report.page import Column, Page, Passage, Reader, Row, Section, Table


def test_every_block_is_written():
    made = markdown(everything("word"))
    for heading in ("# word", "## word", "### word"):
        assert f"{heading}\n" in made
    assert "> [!CAUTION]\n> word\n> - word" in made
    assert "| word | 0.7500 → 0.5000 | word |" in made


def test_data_cannot_leave_its_place():
    made = markdown(everything(EVIL + "\n# not a heading | `x` [a](https://example.org)"))
    assert not re.search(r"(?<!\\)<(?!/?(details|summary)>)", made)
    assert "\n# not" not in made and not re.search(r"(?<!\\)\]\(", made) and "https://" not in made


def test_tables_have_as_many_cells_in_every_row():
    for table in re.findall(r"(?:^\|.*\n)+", markdown(everything("a|b")), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_what_is_left_out_is_said():
    table = Table("t", (Column("n", "count"),), tuple(Row((i,)) for i in range(ROWS + 7)))
    reader = Reader("r", tuple(Passage(f"p{i}", "a", "b") for i in range(PASSAGES + 3)))
    made = markdown(Page("t", (Section("s", (table, reader)),)))
    assert "7 more rows" in made and "3 more passages" in made


def test_json_holds_every_block_and_is_valid():
    page = everything("a")
    told = json.loads(page.to_json())
    assert told["title"] == "a"
    kinds = {b["block"] for b in told["sections"][0]["blocks"]}
    assert {"text", "table", "chart", "bars", "bubbles", "matrix", "reader", "tabs"} <= kinds
    chart = next(b for b in told["sections"][0]["blocks"] if b["block"] == "chart")
    assert chart["series"][1]["points"][1]["x"] is None
    assert chart["series"][0]["points"][1]["x"]["n"] == 2
