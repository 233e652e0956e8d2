"""One verdict for each surface of a document: borders, surfaces that identify nobody, ordinary words, one label."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym import anonymize, detect
from allonym.detection import TAGGER
from allonym.detection.nobody import drop_citations
from allonym.detection.turns import add_turns
from allonym.detection.verdict import give_one_label, weigh_findings
from allonym.detection.words import is_calling
from allonym.document import Document, Span
from allonym.labels import TAXONOMY

CAREFUL = " It was late. They left. Nobody came. We slept."


def place(text: str, *marks: tuple[str, str, float]) -> list[Span]:
    """Findings of the tagger, one after the other: surface, label, chance."""
    out: list[Span] = []
    for surface, label, chance in marks:
        start = text.index(surface, out[-1].end if out else 0)
        out.append(Span(start, start + len(surface), label, chance, TAGGER))
    return out


def weigh(text: str, *marks: tuple[str, str, float]) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.label) for s in sorted(weigh_findings(Document("", text), place(text, *marks)))]


@check_each_row(
    "text, mark, wanted",
    [
        ("Hi Bram, how are you?", ("Hi Bram", "PERSON", 0.7), "Bram"),
        (
            "Lives at 14 Mill Lane, Leeds LS6 2AB, NHS 943 476 5919.",
            ("14 Mill Lane, Leeds LS6 2AB, NHS 943 476 5919", "STREET_ADDRESS", 0.9),
            "14 Mill Lane, Leeds LS6 2AB",
        ),
        ("sent to your Carlisle branch today", ("Carlisle branch", "CITY", 0.6), "Carlisle"),
        ("Mum Philomena rang, told", ("Philomena rang", "PERSON", 0.9), "Philomena"),
        ("Faze censor is smart", ("Faze censor", "PERSON", 0.9), "Faze censor"),
        ("known as Brain_boy here", ("Brain_boy", "PERSON", 0.9), "Brain_boy"),
        ("it is K V seven, yes", ("K V seven", "PERSON", 0.9), "K V seven"),
        ("the team, esp. Dawn on nights", ("esp. Dawn", "PERSON", 0.6), "Dawn"),
        ("We rang. Blessing Okonkwo came", ("Okonkwo", "PERSON", 0.9), "Blessing Okonkwo"),
        ("We are late. Hope Sarah waits", ("Sarah", "PERSON", 0.9), "Sarah"),
        ("low mood since Jan. Morwen rang", ("Jan. Morwen", "PERSON", 0.7), "Morwen"),
        (
            "thanks to the Committee. Pascal Tierney came",
            ("Committee. Pascal Tierney", "PERSON", 0.9),
            "Pascal Tierney",
        ),
        ("the officer, Sh. Mahesh Chand, left", ("Sh. Mahesh Chand", "PERSON", 0.9), "Mahesh Chand"),
        (
            "To Halcyon Broadband, Complaints",
            ("Halcyon Broadband, Complaints", "ORGANIZATION", 0.7),
            "Halcyon Broadband",
        ),
        ("Cheers\nP.S. Pip is fine", ("P.S. Pip", "PERSON", 0.9), "Pip"),
        ("a Diploma in Law at Elm College", ("Diploma in Law at Elm College", "ORGANIZATION", 0.9), "Elm College"),
        (
            "the Master of Brenlow College",
            ("Master of Brenlow College", "ORGANIZATION", 0.9),
            "Master of Brenlow College",
        ),
        ("on your first day, 2 September", ("first day, 2 September", "DATE", 0.7), "2 September"),
        (
            "Sent: Friday, 7 December 2001 5:14 AM",
            ("Friday, 7 December 2001 5", "DATE", 0.9),
            "Friday, 7 December 2001",
        ),
        ("I live at number 13", ("number 13", "STREET_ADDRESS", 0.9), "13"),
        ("units from Halcyon and 10 more", ("Halcyon and 10", "ORGANIZATION", 0.4), "Halcyon"),
        ("I bought it at Fennimore's.", ("Fennimore", "ORGANIZATION", 0.9), "Fennimore's"),
        ("I read Fennimore's book", ("Fennimore", "PERSON", 0.9), "Fennimore"),
        ("Q. Who?\nA. Pruitt. Danny.", ("A. Pruitt", "PERSON", 0.9), "Pruitt"),
        ("I know A. Pruitt well", ("A. Pruitt", "PERSON", 0.9), "A. Pruitt"),
        ("did u hear abt Nikhil tmrw", ("abt Nikhil tmrw", "PERSON", 0.9), "Nikhil"),
        ("a nice cheap Vauxhall", ("cheap Vauxhall", "PRODUCT", 0.6), "Vauxhall"),
        ("u seen jin ko lol", ("jin ko lol", "PERSON", 0.9), "jin ko"),
        ("we met poppy Whitfield", ("poppy Whitfield", "PERSON", 0.9), "poppy Whitfield"),
        ("he met bin Rashid", ("bin Rashid", "PERSON", 0.9), "bin Rashid"),
        ("the Tolliver Hall, room 2.14", ("Tolliver Hall, room 2.14", "FACILITY", 0.8), "Tolliver Hall"),
        ("We met PC 4471 Goodall.", ("PC 4471 Goodall", "PERSON", 0.8), "Goodall"),
        ("Department: Regulatory Pumps", ("Department: Regulatory Pumps", "ORGANIZATION", 0.9), "Regulatory Pumps"),
        ("Graham at Pike & Rowe (9)", ("Pike & Rowe (", "STREET_ADDRESS", 0.5), "Pike & Rowe"),
        ("3. Pumps. Cllr Tolliver spoke", ("3. Pumps. Cllr Tolliver", "PERSON", 0.9), "Pumps. Cllr Tolliver"),
        ("Total incl. Vane", (". Vane", "ORGANIZATION", 0.9), "Vane"),
        ("Contractor: Keir Lomax Ltd. Start now", ("Keir Lomax Ltd. Start", "ORGANIZATION", 0.9), "Keir Lomax Ltd"),
        ("Tom – NI number is missing", ("Tom – NI", "PERSON", 0.7), "Tom"),
        ("OK to pay, M.\nVoucher V-25", ("M.\nVoucher", "PERSON", 0.9), "M."),
        ("Pt Wilma Tarn DOB 3/11/51", ("Wilma Tarn DOB", "PERSON", 0.9), "Wilma Tarn"),
        ("had TKR L 2017 and was well", ("TKR L 2017", "DATE", 0.6), "2017"),
        ("closed on MAY 2017 at last", ("MAY 2017", "DATE", 0.6), "MAY 2017"),
        ("We asked Major Tarn", ("Major Tarn", "PERSON", 0.9), "Tarn"),
        ("surgery at Elmhill wi him", ("Elmhill wi", "FACILITY", 0.9), "Elmhill"),
        ("We saw MS Fennimore bat", ("Fennimore", "PERSON", 0.9), "MS Fennimore"),
        ("WE SAW MS FENNIMORE", ("MS FENNIMORE", "PERSON", 0.9), "FENNIMORE"),
        ("We saw Ms Fennimore bat", ("Ms Fennimore", "PERSON", 0.9), "Fennimore"),
        ("2010 MSc Pumps, Elm College", ("MSc Pumps, Elm College", "ORGANIZATION", 0.7), "Elm College"),
        ("We thank Cllr Tolley for this.", ("Cllr Tolley", "PERSON", 0.9), "Tolley"),
        ("It was Alhaji Bello Garba.", ("Alhaji Bello Garba", "PERSON", 0.9), "Bello Garba"),
        ("My loan is from Auntie Bev.", ("Auntie Bev", "PERSON", 0.9), "Bev"),
        ("So Chief E. C. Okorie left.", ("Chief E. C. Okorie", "PERSON", 0.9), "E. C. Okorie"),
        ("Thank you, Kiran ji.", ("Kiran ji", "PERSON", 0.9), "Kiran"),
        ("For it: Pat Gunderson, Esq.", ("Pat Gunderson, Esq", "PERSON", 0.9), "Pat Gunderson"),
        ("Love, Tina x", ("Tina x", "PERSON", 0.9), "Tina"),
        ("They live in Co. Clare now.", ("Co. Clare", "REGION", 0.9), "Clare"),
        ("Teacher: Miss Cheung Attendance: 94 %", ("Cheung Attendance", "PERSON", 0.9), "Cheung"),
        ("Cheers Dave, will do", ("Cheers Dave", "PERSON", 0.9), "Dave"),
        ("On 14 May 2024, 7 days before", ("14 May 2024, 7 days", "DATE", 0.9), "14 May 2024"),
        ("He's 58, five years off", ("58, five years", "AGE", 0.9), "58"),
        ("NB: Lynne is off", ("NB: Lynne", "PERSON", 0.9), "Lynne"),
        ("NB Patel called", ("NB Patel", "PERSON", 0.9), "NB Patel"),
        ("8. AOB. Hazel thanked us", ("AOB. Hazel", "PERSON", 0.9), "Hazel"),
        ("– Ms Charu\nHindi – Fair", ("Charu\nHindi", "PERSON", 0.9), "Charu"),
        ("It was a Saturday.", ("a Saturday", "DATE", 0.9), "Saturday"),
        (
            "Send it to the same address, Flat 6, The Tannery",
            ("address, Flat 6, The Tannery", "STREET_ADDRESS", 0.9),
            "Flat 6, The Tannery",
        ),
        ("I met __Ada Brook__ there", ("Ada Brook", "PERSON", 0.9), "Ada Brook"),
        ("It was Pastor Maldonado.", ("Pastor Maldonado", "PERSON", 0.9), "Pastor Maldonado"),
        ("We got esp. old Harrow Bank", ("esp. old Harrow Bank", "ORGANIZATION", 0.9), "Harrow Bank"),
        ("a reply by mossyjim_72 there", ("mossyjim", "PERSON", 0.7), "mossyjim_72"),
        ("the admin is hussein.k today", ("hussein", "PERSON", 0.7), "hussein.k"),
        ("the.real.deepak wrote it", ("deepak", "PERSON", 0.7), "the.real.deepak"),
        ("we met hussein.then home", ("hussein", "PERSON", 0.7), "hussein"),
        ("see hussein.txt there", ("hussein", "PERSON", 0.7), "hussein"),
        ("I asked Hussein.thanks", ("Hussein", "PERSON", 0.7), "Hussein"),
        ("He went down. No. 26 Colliery shut.", ("26 Colliery", "STREET_ADDRESS", 0.7), "No. 26 Colliery"),
        ("then spice_route_sam wrote", ("route_sam", "PERSON", 0.7), "spice_route_sam"),
        ("Cheung Attendance: I said no.", ("Cheung Attendance", "PERSON", 0.9), "Cheung Attendance"),
    ],
)
def test_words_that_are_no_part_of_a_name_stay(text, mark, wanted):
    assert [surface for surface, _ in weigh(text, mark)] == [wanted]


def test_a_rank_a_listed_firm_and_an_employer_have_their_label():
    assert weigh("Police (PC Nolan) came", ("PC Nolan", "ORGANIZATION", 0.9)) == [("Nolan", "PERSON")]
    assert weigh("We bought it at PC World", ("PC World", "ORGANIZATION", 0.9)) == [("PC World", "ORGANIZATION")]
    assert weigh("then Accenture had him", ("Accenture", "PERSON", 0.9)) == [("Accenture", "ORGANIZATION")]
    assert weigh("then Chase had him", ("Chase", "PERSON", 0.9)) == [("Chase", "PERSON")]
    assert weigh("her worker from Mind left", ("Mind", "STREET_ADDRESS", 0.4)) == [("Mind", "ORGANIZATION")]


def test_a_legal_form_makes_a_firm_of_a_name():
    firm = weigh("Yours\nKirby Mellor LLP", ("Kirby Mellor", "PERSON", 0.9), ("LLP", "ORGANIZATION", 0.9))
    assert firm == [("Kirby Mellor LLP", "ORGANIZATION")]
    lines = weigh("Yours\nKirby Mellor\nLLP", ("Kirby Mellor", "PERSON", 0.9), ("LLP", "ORGANIZATION", 0.9))
    assert ("Kirby Mellor", "PERSON") in lines


def test_labels_of_nobody_are_no_findings():
    document = add_turns(Document("", "P3: Same.\nLead: P4, you nod? Ask @here.\nP4: I do.\nP3: So."))
    assert len(document.turns) == 4
    marks = place(document.text, ("P4", "DATE", 0.9), ("@here", "SOCIAL_HANDLE", 0.9))
    assert weigh_findings(document, marks) == []
    listed = [replace(mark, source="lexicon:dictionary") for mark in marks]
    assert weigh_findings(document, listed) == listed  # what the user lists counts


def test_two_halves_of_a_name_with_a_hyphen_are_one():
    text = "CV\nTobias Lindqvist-Mensah\nLeeds"
    findings = place(text, ("Tobias Lindqvist", "PERSON", 0.99), ("-Mensah", "STREET_ADDRESS", 0.8))
    assert [(text[s.start : s.end], s.label) for s in weigh_findings(Document("", text), findings)] == [
        ("Tobias Lindqvist-Mensah", "PERSON")
    ]


def test_an_address_ends_before_the_next_field_though_a_number_stands_beside_it():
    text = "4 Mill Lane, Otley LS21 3JP. Mobile 07700 900123."
    findings = place(
        text, ("4 Mill Lane, Otley LS21 3JP. Mobile", "STREET_ADDRESS", 0.8), ("07700 900123", "PHONE_NUMBER", 0.9)
    )
    weighed = [text[s.start : s.end] for s in sorted(weigh_findings(Document("", text), findings))]
    assert weighed == ["4 Mill Lane, Otley LS21 3JP", "07700 900123"]


@check_each_row(
    "text, surface, label, is_one",
    [
        ("as in 795 F.2d 90, 92 (1986)", "795 F.2d 90", "STREET_ADDRESS", False),
        ("Kingsley,   576   U. S., at 397", "576", "STREET_ADDRESS", False),
        ("cited in 84 U. Chi. L. Rev. 249", "84 U. Chi. L. Rev", "STREET_ADDRESS", False),
        ("Id., at 45a, not 12 Brook Street", "12 Brook Street", "STREET_ADDRESS", True),
        ("We live at 12 Kingsmead now", "12 Kingsmead", "STREET_ADDRESS", True),
        ("of 5 Kingsmead, Dover, cites 795 F.2d 90", "5 Kingsmead, Dover", "STREET_ADDRESS", True),
        ("Presented to ER 2 days ago. Lives at 221B Baker.", "221B Baker", "STREET_ADDRESS", True),
        ("The claimant lives at 221B Baker. Id., at 9.", "221B Baker", "STREET_ADDRESS", True),
        ("She lives at 1200 N.W. 23rd, Portland", "1200 N.W. 23rd", "STREET_ADDRESS", True),
        ("home: 14 Hill Rev. 3", "14 Hill Rev", "STREET_ADDRESS", True),
        ("see 813 F. 2d 884, 888 (CA8 1987)", "CA8 1987", "STREET_ADDRESS", False),
        ("see 436 U.S. 658 (1978)", "U.S.", "COUNTRY", False),
        ("He came to the U.S. in 1978", "U.S.", "COUNTRY", True),
    ],
)
def test_a_citation_holds_no_address_and_no_country(text, surface, label, is_one):
    findings = place(text, (surface, label, 0.9))
    assert bool(drop_citations(text, findings)) is is_one


def test_a_degree_behind_a_name_is_no_state():
    marks = [("Ada Brook", "PERSON", 0.9), ("MD", "US_STATE", 0.6, "rules:us-state-short")]
    text = "Ada Brook, MD"
    findings = [
        Span(text.index(m[0]), text.index(m[0]) + len(m[0]), *m[1:3], m[3] if m[3:] else "tagger") for m in marks
    ]
    assert [s.label for s in weigh_findings(Document("", text), findings)] == ["PERSON"]
    findings = [replace(findings[0], end=6), replace(findings[1], start=8, end=10)]
    weighed = weigh_findings(Document("", "Ms Lee, PA 19104"), findings)
    assert sorted(s.label for s in weighed) == ["PERSON", "US_STATE"]
    assert anonymize("Anna Brown, Texas").text == "[PERSON_1], [US_STATE_1]"
    assert len(weigh_findings(Document("", "Fell Point, MD"), [Span(12, 14, "US_STATE", 0.6, "rules:x")])) == 1


@check_each_row(
    "text, people, expected",
    [
        ('Met Babatunde "Tuns" Alabi here', ("Babatunde", "Tuns", "Alabi"), ['Babatunde "Tuns" Alabi']),
        ('Mrs Philippa ("Pip") Lowe', ("Philippa", "Pip", "Lowe"), ['Philippa ("Pip") Lowe']),
        ("my wife, Joy. Joy came", ("Joy. Joy",), ["Joy", "Joy"]),
        ("distracting Ada. Mark came", ("Ada. Mark",), ["Ada", "Mark"]),
        ("Thos. Brook came", ("Thos. Brook",), ["Thos. Brook"]),
        ("Met Arthur (Nobby) Clarke here", ("Arthur", "Nobby", "Clarke"), ["Arthur (Nobby) Clarke"]),
        ("Met Arthur (and Nobby) Clarke", ("Arthur", "Nobby", "Clarke"), ["Arthur", "Nobby", "Clarke"]),
        ("Name: ADEWALE, Toluwani Grace", ("ADEWALE", "Toluwani Grace"), ["ADEWALE, Toluwani Grace"]),
        ("From: Okafor, Beatrix\nTo: us", ("Okafor", "Beatrix"), ["Okafor, Beatrix"]),
        ("Achterberg, R.\nchair", ("Achterberg", "R."), ["Achterberg, R."]),
        ("I saw Okafor, Beatrix and you", ("Okafor", "Beatrix"), ["Okafor", "Beatrix"]),
        ("Present: Okafor, Beatrix, Siobhan", ("Okafor", "Beatrix"), ["Okafor", "Beatrix"]),
    ],
)
def test_parts_of_a_name_are_one_person(text, people, expected):
    findings = place(text, *((name, "PERSON", 0.9) for name in people))
    assert [text[s.start : s.end] for s in weigh_findings(Document("", text), findings)] == expected


def test_given_names_of_a_list_are_two_people():
    mark = ("Benedikt, Siobhan", "PERSON", 0.7)
    people = [("Benedikt", "PERSON"), ("Siobhan", "PERSON")]
    assert weigh("Present: Farah, Benedikt, Siobhan", ("Farah", "PERSON", 0.9), mark)[1:] == people
    assert weigh("Present: Farah, Tolliver, Siobhan", ("Tolliver, Siobhan", "PERSON", 0.7)) == [
        ("Tolliver, Siobhan", "PERSON")
    ]
    assert weigh("Signed: Benedikt, Siobhan.", mark) == [("Benedikt, Siobhan", "PERSON")]


@check_each_row(
    "text, mark, is_kept",
    [
        ("See section 6 of it", ("section 6", "LAW", 0.7), False),
        ("Cost centre: 4410", ("4410", "DATE", 0.9), False),
        ("It was in 1910", ("1910", "DATE", 0.9), True),
        ("Mean age: 75.7", ("75", "AGE", 0.9), False),
        ("We map it by ward for Hove", ("ward for", "STREET_ADDRESS", 0.4), False),
        ("Ex smoker, 12 pk yr at most", ("12 pk yr", "STREET_ADDRESS", 0.2), False),
        ("Ivy is at 12 mill rd still", ("12 mill rd", "STREET_ADDRESS", 0.2), True),
        ("She had a palsy 1999 or so", ("palsy 1999", "STREET_ADDRESS", 0.3), True),
        ("The word is owl$24 now", ("owl$24", "STREET_ADDRESS", 0.2), True),
        ("Carol lives at number thirteen", ("number thirteen", "STREET_ADDRESS", 0.6), True),
        ("DH allopurinol 300 daily", ("DH allopurinol 300", "STREET_ADDRESS", 0.2), False),
        ("The birth father, K.L., left", ("birth father", "OCCUPATION", 0.9), False),
        ("A teacher of Year 4 pupils", ("Year 4", "DATE", 0.9), False),
        ("In Year 1999 it was", ("Year 1999", "DATE", 0.9), True),
        ("A positive Neer's sign on it", ("Neer", "PERSON", 0.9), False),
        ("The scooter's owner left", ("scooter", "OCCUPATION", 0.9), False),
        ("3 x oak board, 2.4 m", ("3 x oak board", "STREET_ADDRESS", 0.3), False),
        ("PC 2217 Goodall took it", ("PC", "PRODUCT", 0.7), False),
        ("My PC 2217 fails", ("PC", "PRODUCT", 0.7), True),
        ("Total incl. VAT 12", ("VAT", "ORGANIZATION", 0.2), False),
        ("She wrote about rivers", ("rivers", "WORK_OF_ART", 0.4), False),
        ("she wrote about rivers", ("rivers", "PERSON", 0.4), True),
        ("Under section 6 of the Ferry Act", ("section 6 of the Ferry Act", "LAW", 0.7), True),
        ("Ask Customer Relations first", ("Customer Relations", "ORGANIZATION", 0.8), False),
        ("Ask Customer Wizards first", ("Customer Wizards", "ORGANIZATION", 0.8), True),
        ("Siobhan in Legal knows", ("Legal", "ORGANIZATION", 0.4), False),
        ("BSc Psychology, second year", ("BSc Psychology", "ORGANIZATION", 0.8), False),
        ("I use Python 3.11 here", ("11", "PRODUCT", 0.3), False),
        ("Good kettle. I like it", ("Good kettle", "PERSON", 0.6), False),
        ("Good anna. I like her", ("Good anna", "PERSON", 0.6), True),
        ("It drops Node.js soon", ("js", "PERSON", 0.3), False),
        ("Runs on an Intel i7-12700 here", ("i7-12700", "GENERIC_ID", 0.2), False),
        ("On the Conners scale he had 9", ("Conners", "PERSON", 0.9), False),
        ("Conners met us", ("Conners", "PERSON", 0.9), True),
        ("Then Priya tests the pump", ("Priya", "PERSON", 0.9), True),
        ("Babinski signs are absent", ("Babinski", "PERSON", 0.9), False),
        ("We paid BA Holdings", ("BA Holdings", "ORGANIZATION", 0.9), True),
        ("The firm MA Logistics", ("MA Logistics", "ORGANIZATION", 0.9), True),
        ("She has a BA in Law", ("BA in Law", "ORGANIZATION", 0.9), False),
        ("since the update to v3.14.2", ("v3.14.2", "DATE", 0.7), False),
        ("BP was 148/86 today", ("86", "AGE", 0.6), False),
        ("Insta: @ada.cooks, phone", ("Insta", "PERSON", 0.9), False),
        ("On Twitter: bad news", ("Twitter", "ORGANIZATION", 0.9), True),
        ("Hospital No: D228817", ("Hospital", "STREET_ADDRESS", 0.3), False),
        ("his d.o.b. 03.05.1948", ("d.o.b.", "PERSON", 0.4), False),
        ("no rule of 50/50 here", ("50/50", "LAW", 0.6), False),
        ("Dear Sir or Madam", ("Sir", "OCCUPATION", 0.3), False),
        ("a job at the shipyard", ("shipyard", "OCCUPATION", 0.7), False),
        ("see you tmrw", ("tmrw", "PERSON", 0.8), False),
        ("We met Nana there", ("Nana", "PERSON", 0.8), True),
        ("closed every Friday", ("Friday", "DATE", 0.8), False),
        ("closed on Friday", ("Friday", "DATE", 0.8), True),
        ("not since Christmas", ("Christmas", "DATE", 0.8), False),
        ("before Christmas 2019", ("Christmas 2019", "DATE", 0.8), True),
        ("on Christmas Day", ("Christmas Day", "DATE", 0.8), True),
        ("Then\nAfternoon tea was served", ("Afternoon tea", "ORGANIZATION", 0.6), False),
        ("Then\nAfternoon Tea Ltd", ("Afternoon Tea", "ORGANIZATION", 0.6), True),
        ("Hi Ewa,\nMOULD AND RENT\nWe came", ("MOULD", "PERSON", 0.8), False),
        ("Hi Ewa,\nMOULD came by\nWe came", ("MOULD", "PERSON", 0.8), True),
        ("attended at 2010 and gave", ("2010", "DATE", 0.9), False),
        ("a nine-year feud with her", ("nine-year", "AGE", 0.5), False),
        ("Patients aged 18 and over were asked.", ("aged 18", "AGE", 0.9), False),
        ("He is aged 67 and over the moon.", ("aged 67", "AGE", 0.9), True),
        ("I, Ada Brook, state that", ("I", "PERSON", 0.4), False),
        ("Witness: Ada Brook, F, 41, trader", ("F", "PERSON", 0.6), False),
        ("Love, F", ("F", "PERSON", 0.6), True),
        ("Brook (c), Lowe, Patel", ("c", "PERSON", 0.6), False),
        ("Pauline Sharman (Mrs)", ("Mrs", "OCCUPATION", 0.6), False),
        ("Maths – 64/100. Careless", ("64/100", "GENERIC_ID", 0.4), False),
        ("leaves at 6.45 SHARP on", ("6.45 SHARP", "STREET_ADDRESS", 0.1), False),
        ("Visit 18.11.24, 4.15pm, at", ("15pm", "DATE", 0.1), False),
        ("home on 22.05. at last", ("22.05.", "DATE", 0.6), True),
        ("Wetzlar, den 4 Maple Road", ("den", "STREET_ADDRESS", 0.9), False),
        ("Ada Brook.\nFrench – Can order", ("French", "ORIGIN", 0.8), False),
        ("a French nurse", ("French", "ORIGIN", 0.8), True),
        ("Adm. no. 3361    Guardian: Ada", ("Guardian", "OCCUPATION", 0.4), False),
        ("Please open Ticket INC-4417 now", ("Ticket", "ORGANIZATION", 0.6), False),
        ("routes us back to 1154(c) and", ("1154(c)", "STREET_ADDRESS", 0.2), False),
        ("TOTAL EUR 2,229.18", ("EUR 2,229.18", "DATE", 0.4), False),
        ("ENGLISH (Mr Lowe)\nGood", ("ENGLISH", "PERSON", 0.6), False),
        ("Present:\nEnglish (chair)", ("English", "PERSON", 0.6), True),
        ("Regards,\nFrench\nLeeds", ("French", "PERSON", 0.6), True),
        ("Present:\nPrice (chair)", ("Price", "PERSON", 0.6), True),
        ("Dluga\n12/50 in Łódź", ("12/50", "STREET_ADDRESS", 0.6), True),
        ("a tank of 1300l for", ("1300l", "GENERIC_ID", 0.8), False),
        ("DOB 12/25 on file", ("12/25", "DATE", 0.9), True),
        ("Mum is 93 and older sister is 95", ("93", "AGE", 0.9), True),
        ("Spoke to M, 7 and F, 9 about it", ("M", "PERSON", 0.6), True),
        ("M, 34 Elm Street", ("M", "PERSON", 0.6), True),
        ("AP (34) lives alone", ("AP", "PERSON", 0.7), True),
        ("I met Ward English and left", ("Ward English", "PERSON", 0.8), True),
        ("Welsh - chair\nLaw - clerk", ("Welsh", "REGION", 0.5), True),
        ("Patient: Appa\nWard 3", ("Appa", "PERSON", 0.8), True),
        ("Held under certificate 9", ("certificate", "LAW", 0.7), False),
        ("I've nineteen legs to see", ("nineteen", "AGE", 0.7), False),
        ("She is nineteen this May", ("nineteen", "AGE", 0.7), True),
        ("1. Sign.\n2. Roof. It leaks.", ("Roof", "PERSON", 0.97), False),
        ("She met Roof. It rained.", ("Roof", "PERSON", 0.97), True),
        ("Roof. It leaks.", ("Roof", "ORGANIZATION", 0.97), True),
        ("She said. Urn. Then", ("Urn", "PERSON", 0.85), False),
        ("She said. Urn came by", ("Urn", "PERSON", 0.85), True),
        ('"Don\'t," she said', ("Don", "PERSON", 0.4), False),
        ("Don told us", ("Don", "PERSON", 0.4), True),
        ("since update 17.4.1 it fails", ("17.4.1", "DATE", 0.4), False),
        ("on 17.4.71 it began", ("17.4.71", "DATE", 0.4), True),
        ("the result of BRCA2 tests", ("BRCA2", "DATE", 0.6), False),
        ("back in MAY19 or so", ("MAY19", "DATE", 0.6), True),
        ("for 6 yrs' service he got", ("6 yrs' service", "DATE", 0.6), False),
        ("English (C2), Finnish", ("C2", "PRODUCT", 0.6), False),
        ("ask the SENCo now", ("SENCo", "PERSON", 0.6), False),
        ("GCSEs: English B, Art C", ("English B", "ORGANIZATION", 0.4), False),
        ("Subjects: Art, taught by Ada Hartwright", ("Ada Hartwright", "PERSON", 0.5), True),
        ("A levels at Wyggeston College", ("Wyggeston College", "ORGANIZATION", 0.9), True),
        ("He said Dr Page rang", ("Page", "PERSON", 0.4), True),
        ("He said Lane rang", ("Lane", "PERSON", 0.9), True),
        ("It is in Lane 4 today", ("Lane 4", "PERSON", 0.9), False),
        ("They told Ko again", ("Ko", "PERSON", 0.4), True),
        ("They told Tat again", ("Tat", "PERSON", 0.9), True),
        ("we told ko again", ("ko", "PERSON", 0.9), True),
        ("we told tat again", ("tat", "PERSON", 0.9), False),
        ("They wait. Soz about it", ("Soz", "PERSON", 0.9), False),
        ("Gribbletz twice, he said", ("Gribbletz", "PERSON", 0.2), False),
        ("He said Gribbletz twice", ("Gribbletz", "PERSON", 0.2), True),
        ("My faither was a fisher", ("faither", "OCCUPATION", 0.9), False),
        ("Siobhan from HR rang", ("HR", "ORGANIZATION", 0.9), False),
        ("Siobhan from HRW rang", ("HRW", "ORGANIZATION", 0.9), True),
        ("he is a pump attendant", ("pump attendant", "OCCUPATION", 0.7), True),
        ("Date (DD/MM/YYYY): ____", ("DD/MM/YYYY", "PRODUCT", 0.5), False),
        ("They said SS twice", ("SS", "PRODUCT", 0.25), True),
        ("Hosp No. K4471902 is new", ("Hosp No.", "PERSON", 0.34), False),
        ("Spoke to Okafor ID 20331 today", ("Okafor", "PERSON", 0.6), True),
        ("Brenlow ID: 4471 wants a card", ("Brenlow", "PERSON", 0.6), True),
        ("Hx T2DM. PMHx nil. BP 120. GP Murphy rang, NKDA", ("Murphy", "PERSON", 0.8), True),
        ("Course: BA (Hons) Politics, Year 2", ("Hons) Politics", "ORGANIZATION", 0.5), False),
        ("Full description: the printer hums", ("Full", "PERSON", 0.4), False),
        ("We write within 21 days to all", ("within 21 days", "DATE", 0.7), False),
        ("We met on 4-19-77 there", ("4-19-77", "DATE", 0.2), True),
        ("The court is free 7-8 there", ("7-8", "DATE", 0.2), False),
        ("Please write in PLAIN WRITING here", ("PLAIN WRITING", "STREET_ADDRESS", 0.25), False),
        ("They crashed into a milk tanker there", ("milk tanker", "OCCUPATION", 0.5), False),
        ("He is a milk tanker driver there", ("milk tanker driver", "OCCUPATION", 0.5), True),
        ("PMH: nil. BP 118/70, NKDA, sats 98. RIF tender", ("RIF", "PERSON", 0.5), False),
        ("They say RIF is tender", ("RIF", "PERSON", 0.5), True),
        ("The hose was stolen from plot 9 there", ("plot 9", "EVENT", 0.7), False),
        ("Love, Jo\n\nP.S. Her number is new", ("Her", "PERSON", 0.7), False),
        ("Marta\nPartner, Orchard Legal LLP", ("Partner", "ORGANIZATION", 0.87), False),
        ("He took Rx Augmentin Duo Forte.", ("Rx Augmentin Duo Forte", "PRODUCT", 0.9), False),
        ("She takes Ventolin 44 mcg 2 puffs.", ("Ventolin 44 mcg 2", "PRODUCT", 0.9), False),
        ("The firm Augmentin Marine called.", ("Augmentin Marine", "ORGANIZATION", 0.9), True),
        ("I hold UHID: LVH/23/110984", ("UHID", "STREET_ADDRESS", 0.5), False),
        ("They sent the PO 4500078231 today", ("PO", "STREET_ADDRESS", 0.5), False),
        ("The driver is a heavy smoker there.", ("smoker", "OCCUPATION", 0.6), False),
        ("Write to Barclays Ref 4471 now.", ("Barclays Ref", "ORGANIZATION", 0.6), True),
        ("We met Baker no 5 there.", ("Baker", "PERSON", 0.6), True),
        ("It is tom_b, e-mail tom@x.example.", ("e-mail", "PERSON", 0.6), False),
        ("Matric no. 448113 was lost.", ("Matric no.", "ORGANIZATION", 0.5), False),
        ("It was Deputy Lacey Crum.", ("Deputy", "OCCUPATION", 0.7), False),
        ("BP 120/80, sats 99 %, NKDA, O/E well, Imp CKD 3b.", ("CKD 3b", "LAW", 0.5), False),
    ],
)
def test_what_identifies_nobody_is_no_finding(text, mark, is_kept):
    assert bool(weigh(text, mark)) == is_kept


@check_each_row(
    "text, marks, wanted",
    [
        ("The owner came. Owner and guests met.", [("Owner", "ORGANIZATION", 0.8)], []),
        ("I met Hope. I hope so.", [("Hope", "PERSON", 0.5)], ["Hope"]),
        ("I met Hope. I hope so.", [("Hope", "PERSON", 0.2)], []),
        ("Rosa Beck <rosa.beck@mail.example>", [("Rosa Beck", "PERSON", 0.6)], ["Rosa Beck"]),
        ("Rosa Beck: see /home/rosa/beck/", [("Rosa Beck", "PERSON", 0.6)], ["Rosa Beck"]),
        ("The mark is low. Mark left.", [("Mark", "PERSON", 0.95)], ["Mark"]),
        ("Choose a doctor. The doctor helps.", [("doctor", "OCCUPATION", 0.9), ("doctor", "OCCUPATION", 0.9)], []),
        ("I am a doctor. A doctor helps.", [("doctor", "OCCUPATION", 0.9)] * 2, ["doctor", "doctor"]),
        ("as a bus driver he knew", [("bus driver", "OCCUPATION", 0.9)], ["bus driver"]),
        ("Ada Page rang. We saw Page.", [("Ada Page", "PERSON", 0.9), ("Page", "FACILITY", 0.4)], ["Ada Page", "Page"]),
        ("I met Lake. A lake, a Lake, Lake!", [("Lake", "PERSON", 0.9), ("Lake", "PERSON", 0.2)], ["Lake", "Lake"]),
    ],
)
def test_an_ordinary_word_needs_strong_evidence_at_one_of_its_mentions(text, marks, wanted):
    assert [surface for surface, _ in weigh(text + CAREFUL, *marks)] == wanted


def test_long_runs_of_letters_end_soon():
    long = "x" * 400
    assert weigh(f"{long} Ada met\nBrenlow", ("Ada", "PERSON", 0.5)) == [("Ada", "PERSON")]
    assert weigh(f"We saw {long}1 there", (f"{long}1", "GENERIC_ID", 0.5)) == [(f"{long}1", "GENERIC_ID")]


def test_a_finding_beside_another_is_not_weighed():
    text = "the British Council paid"
    assert weigh(text, ("British", "ORIGIN", 0.9), ("Council", "ORGANIZATION", 0.9))[1:] == [
        ("Council", "ORGANIZATION")
    ]


def test_a_surface_has_one_label():
    text = "TraceMap grew. TraceMap, tracemap and TraceMap Ltd; Ann Lake saw Lake and Lake."
    marks = [("TraceMap", "ORGANIZATION", 0.9), ("TraceMap", "PRODUCT", 0.5), ("tracemap", "CITY", 0.5)]
    marks += [("TraceMap Ltd", "ORGANIZATION", 0.9), ("Ann Lake", "PERSON", 0.9), ("Lake", "LOCATION", 0.4)]
    spans = place(text, *marks)
    rule = Span(text.rindex("Lake"), text.rindex("Lake") + 4, "CITY", 0.9, "rules:city")
    labels = [s.label for s in give_one_label(text, [*spans, rule], TAXONOMY)]
    assert labels == ["ORGANIZATION", "ORGANIZATION", "ORGANIZATION", "ORGANIZATION", "PERSON", "PERSON", "CITY"]


def test_the_first_word_of_a_firm_with_its_legal_form_is_that_firm():
    spans = place(
        "Ashdown Marine plc. Ashdown", ("Ashdown Marine plc", "ORGANIZATION", 0.9), ("Ashdown", "PERSON", 0.9)
    )
    labels = [s.label for s in give_one_label("Ashdown Marine plc. Ashdown", spans, TAXONOMY)]
    assert labels == ["ORGANIZATION", "ORGANIZATION"]
    spans = place("Ashdown Marine. Ashdown", ("Ashdown Marine", "ORGANIZATION", 0.9), ("Ashdown", "PERSON", 0.9))
    assert give_one_label("Ashdown Marine. Ashdown", spans, TAXONOMY)[1].label == "PERSON"


def test_a_name_of_several_words_is_no_trade_in_another_place():
    text = "From West Position to West Position; a baker met Baker."
    marks = [("West Position", "PERSON", 0.9), ("West Position", "OCCUPATION", 0.5)]
    spans = place(text, *marks, ("baker", "OCCUPATION", 0.5), ("Baker", "PERSON", 0.9))
    assert [s.label for s in give_one_label(text, spans, TAXONOMY)] == ["PERSON", "PERSON", "OCCUPATION", "PERSON"]


@given(st.permutations(range(5)))
def test_the_order_of_findings_does_not_matter(order):
    text = "Hi Bram, Legal met Lake and Lake; the lake was cold."
    marks = [("Hi Bram", "PERSON", 0.9), ("Legal", "ORGANIZATION", 0.5)]
    marks += [("Lake", "PERSON", 0.5), ("Lake", "LOCATION", 0.5), ("lake", "LOCATION", 0.7)]
    spans = place(text, *marks)
    one, other = spans, [spans[i] for i in order]
    assert sorted(weigh_findings(Document("", text), one)) == sorted(weigh_findings(Document("", text), other))
    assert sorted(give_one_label(text, one, TAXONOMY)) == sorted(give_one_label(text, other, TAXONOMY))


def test_findings_of_rules_are_not_weighed():
    text = "Legal wrote. The legal team did."
    span = Span(0, 5, "ORGANIZATION", 0.6, "rules:some")
    assert weigh_findings(Document("", text), [span]) == [span]


@check_each_row(
    "word, is_one",
    [("baker", True), ("nurses", True), ("refugee", True), ("committee", False), ("departments", False)],
)
def test_what_may_say_what_somebody_does(word, is_one):
    assert is_calling(word) is is_one


def test_british_spellings_of_diseases_are_known():
    text = "He has anaemia and dyspnoea, no wheeze, and sees Dr Brook about it."
    assert [(text[s.start : s.end], s.label) for s in sorted(detect(text, "gdpr"))][:2] == [
        ("anaemia", "MEDICAL_CONDITION"),
        ("dyspnoea", "MEDICAL_CONDITION"),
    ]
    assert anonymize(text).text == "He has anaemia and dyspnoea, no wheeze, and sees Dr [PERSON_1] about it."


def test_forms_of_courtesy_tell_the_origin_in_a_text_in_another_language():
    text = "I met Herr Braun and Frau Weber in Ulm. Then MS Dhoni came in with Mr Tate and Dr. Lund."
    assert anonymize(text).text == (
        "I met [PERSON_1] and [PERSON_2] in [CITY_1]. Then [PERSON_3] came in with Mr [PERSON_4] and Dr. [PERSON_5]."
    )
    text = "Ich habe gestern mit Herrn Braun über den Vertrag gesprochen, und Frau Weber war auch dabei."
    assert anonymize(text).text == (
        "Ich habe gestern mit Herrn [PERSON_1] über den Vertrag gesprochen, und Frau [PERSON_2] war auch dabei."
    )


def test_offices_ranks_and_articles_belong_to_the_name():
    text = (
        "Cllr Ada Stott asked Father Donnelly. PC 4471 Marlowe saw Cllr Stott and her sister at The Old Mill Practice."
    )
    assert anonymize(text).text == (
        "[PERSON_1] asked [PERSON_2]. [EMPLOYEE_ID_1] [PERSON_3] saw [PERSON_1] and her sister at [FACILITY_1]."
    )
    assert [s.start for s in detect("We went home. The Old Mill Practice is shut.")] == [18]


def test_abbreviations_of_nurses_make_a_note_in_which_they_name_nobody():
    text = "0215 Obs stable. PMH T2DM, HTN. D/W Ortho, held as per Ortho. Datix done. Ring Paloma re teeth."
    assert anonymize(text).text == text.replace("Paloma", "[PERSON_1]")


def test_a_verb_that_opens_a_field_is_no_part_of_a_name():
    for before, label in (("", "PERSON"), ("comment: ", "WORK_OF_ART"), ("Likes tea\n", "WORK_OF_ART")):
        assert weigh(f"{before}Knows Margaret well", ("Knows Margaret", label, 0.5)) == [("Margaret", "PERSON")]
    assert weigh("Banks Margaret called", ("Banks Margaret", "PERSON", 0.9)) == [("Banks Margaret", "PERSON")]
