"""Pseudonyms of addresses: who they belong to stays true, nobody real is reached by them.

The cases with people are in ``pseudonyms_people.jsonl``, see ``test_people.py``.
"""

import ipaddress
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.replace.pseudonyms import play
from tests.rows import check_each_row

from allonym.replace.cast import CorpusBook

OTHER = b"another key for the tests 32 byte"
RESERVED = re.compile(r"(?:[a-z0-9-]+\.)+example\.(?:com|org|net)")
TESTS = [ipaddress.ip_network(n) for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15")]


def one(surface, label, **more):
    return play(f"{{{surface}|{label}}}", **more)


LOCAL = st.from_regex(r"[a-z]{2,10}([._-][a-z]{1,10})?[0-9]{0,3}", fullmatch=True)
DOMAIN = st.from_regex(r"([a-z]{2,6}\.)?[a-z]{4,12}\.(com|org|net|de|co\.uk|io)", fullmatch=True)


@given(LOCAL, DOMAIN)
def test_an_address_becomes_one_of_a_reserved_domain(local, domain):
    out = one(f"{local}@{domain}", "EMAIL_ADDRESS")
    new_local, _, new_domain = out.partition("@")
    assert RESERVED.fullmatch(new_domain)
    assert domain not in out
    assert new_local and re.fullmatch(r"[a-z0-9._+-]+", new_local)
    assert out == one(f"{local}@{domain}", "EMAIL_ADDRESS")
    assert out.upper() == one(f"{local}@{domain}".upper(), "EMAIL_ADDRESS")


@given(st.lists(st.tuples(LOCAL, DOMAIN), min_size=2, max_size=6, unique=True))
def test_two_addresses_never_share_a_substitute(some):
    text = " ".join(f"{{{local}@{domain}|EMAIL_ADDRESS}}" for local, domain in some)
    out = play(text).split(" ")
    assert len(set(out)) == len(some)
    domains = {domain: new.partition("@")[2] for (_, domain), new in zip(some, out, strict=True)}
    for (local, domain), new in zip(some, out, strict=True):
        assert new.partition("@")[2] == domains[domain]
        same = [n for (other, _), n in zip(some, out, strict=True) if other == local]
        assert {n.partition("@")[0] for n in same} == {new.partition("@")[0]}


def test_another_key_another_address():
    texts = [f"user{name}@company.com" for name in ("alpha", "brvo", "chrlie", "dlta")]
    assert [one(t, "EMAIL_ADDRESS") for t in texts] != [one(t, "EMAIL_ADDRESS", key=OTHER) for t in texts]


@check_each_row(
    "surface, shape",
    [
        ("jane dot doe at acme dot com", r"\w+ dot \w+ at \w+ dot example dot com"),
        ("j underscore doe at acme dot org", r"\w underscore \w+ at \w+ dot example dot org"),
        ("jane.doe(at)acme.net", r"\w+\.\w+\(at\)\w+\.example\.net"),
        ("jane [at] acme [dot] com", r"\w+ \[at\] \w+ \[dot\] example \[dot\] com"),
        ("<jane@acme.com>", r"<\w+@\w+\.example\.com>"),
        ("mailto:jane@acme.com", r"mailto:\w+@\w+\.example\.com"),
        ("jane+news@acme.com", r"\w+\+news@\w+\.example\.com"),
        ("jane@acme[.]com", r"\w+@\w+\[\.\]example\[\.\]com"),
        ("Info@acme.com", r"Info@\w+\.example\.com"),
        ("xk7@foo.de", r"[a-z]{2}[0-9]@\w+\.example\.com"),
        ("müller@firma.de", r"[a-z]+@\w+\.example\.com"),
    ],
)
def test_how_an_address_is_written_stays(surface, shape):
    out = one(surface, "EMAIL_ADDRESS")
    assert re.fullmatch(shape, out), out
    assert not {"jane", "doe", "acme"} & set(re.findall(r"[a-z]+", out.lower()))


def test_mailboxes_of_everybody_share_a_provider():
    out = play("{ann.lee@gmail.com|EMAIL_ADDRESS} {bo.lee@gmail.com|EMAIL_ADDRESS} {bo.lee@firm.com|EMAIL_ADDRESS}")
    first, second, third = (a.partition("@")[2] for a in out.split())
    assert first == second != third


def test_unknown_people_of_addresses_agree_with_people():
    alone = one("sarah.connor@acme.com", "EMAIL_ADDRESS").partition("@")[0]
    name = one("Sarah Connor", "PERSON").lower()
    assert alone == name.replace(" ", ".")


@check_each_row(
    "surface, shape",
    [
        ("https://www.linkedin.com/in/somebody-known", r"https://www\.\w+\.example\.com/in/\w+-\w+"),
        (
            "http://acme.com/users/1234/report.pdf?id=99&q=rome#top",
            r"http://\w+\.example\.com/users/\d{4}/\w+\.pdf\?id=\d\d&q=\w+#\w+",
        ),
        ("www.acme.org", r"www\.\w+\.example\.org"),
        ("ftp://bob:secret@files.acme.net:2121/a/", r"ftp://\w+:\w+@files\.\w+\.example\.net:2121/a/"),
        ("https://10.0.0.5:8080/x1", r"https://10\.\d+\.\d+\.\d+:8080/\w\d"),
        ("acme.com/holiday/Rome", r"\w+\.example\.com/[a-z]+/[A-Z][a-z]+"),
        ("https://a.io/%C3%A9t%C3%A9", r"https://\w+\.example\.com/%C3%A9\w%C3%A9"),
        ("hxxp://acme[.]com/x", r"hxxp://\w+\[\.\]example\[\.\]com/\w"),
        ("https://[2001:4860::8888]/x", r"https://\[2001:db8:[0-9a-f:]+\]/\w"),
    ],
)
def test_the_structure_of_a_web_address_stays(surface, shape):
    out = one(surface, "URL")
    assert re.fullmatch(shape, out), out
    words = {"acme", "linkedin", "rome", "holiday", "1234", "secret", "bob", "somebody", "known", "report"}
    assert not words & set(re.findall(r"[a-z]+|\d+", out.lower()))


def test_signed_addresses_keep_their_parameters():
    url = "https://store9.example.net/b/f.txt?X-Amz-Signature=0123456789abcdef&X-Amz-Date=20200101T000000Z"
    out = one(url, "STORAGE_SIGNED_URL")
    assert re.search(r"X-Amz-Signature=[0-9a-f]{16}&X-Amz-Date=\d{8}[A-Z]\d{6}[A-Z]$", out)
    assert "0123456789abcdef" not in out and "store9" not in out


@given(st.lists(st.ip_addresses(v=4), min_size=1, max_size=12, unique=True))
@example([ipaddress.ip_address(a) for a in ("127.0.0.1", "127.0.0.132")])  # the first choice for one is the other
@example([ipaddress.ip_address("127.0.0.151")])  # or itself
def test_ip_addresses_are_of_test_networks(some):
    out = play(" ".join(f"{{{a}|IP_ADDRESS}}" for a in some)).split()
    assert len(set(out)) == len(some)
    for old, new in zip(some, map(ipaddress.ip_address, out), strict=True):
        assert new != old
        assert any(new in net for net in TESTS) or (new.is_private and old.is_private)


@pytest.mark.parametrize("after", [".", ": up", "/8", ":80"])
def test_no_ip_address_becomes_one_that_stands_in_the_document(after):
    first = one("127.0.0.1", "IP_ADDRESS")
    text = f"{{127.0.0.1|IP_ADDRESS}} is not {first}{after}"
    out = play(text).partition(" ")[0]
    assert ipaddress.ip_address(out).is_loopback and out != first
    book = CorpusBook()
    assert one("127.0.0.1", "IP_ADDRESS", book=book) == first
    assert play(text, book=book).partition(" ")[0] == play(text, book=book).partition(" ")[0] != first


def test_addresses_of_a_network_stay_together():
    out = play(
        "{8.8.8.8|IP_ADDRESS} {8.8.8.9|IP_ADDRESS} {9.9.9.9|IP_ADDRESS} {10.0.0.1|IP_ADDRESS} {10.0.0.2|IP_ADDRESS}"
    )
    nets = [a.rpartition(".")[0] for a in out.split()]
    assert nets[0] == nets[1] != nets[2]
    assert nets[3] == nets[4] and nets[3].startswith("10.")


@given(st.ip_addresses(v=6).filter(lambda a: ":" not in (str(a)[0], str(a)[-1])))
@example(ipaddress.ip_address("fe90::1"))
def test_ipv6_is_of_the_documentation_range(address):
    out = ipaddress.ip_address(one(str(address), "IP_ADDRESS"))
    assert out in ipaddress.ip_network("fe80::/10" if address.is_link_local else "2001:db8::/32")


@check_each_row(
    "surface, label, shape",
    [
        ("192.168.1.7/24", "IP_ADDRESS", r"192\.168\.\d+\.\d+/24"),
        ("5.6.7.8:443", "IP_ADDRESS", r"(192\.0\.2|198\.51\.100|203\.0\.113)\.\d+:443"),
        (
            "session=abc123DEF; Path=/; theme=dark",
            "HTTP_COOKIE",
            r"session=[a-z]{3}\d{3}[A-Z]{3}; Path=/; theme=[a-z]{4}",
        ),
        ("@darkwolf_77", "SOCIAL_HANDLE", r"@[a-z]+_\d\d"),
        ("DarkWolf", "USER_NAME", r"[A-Z][a-z]+"),
        ("darkwolf77", "ONLINE_ID", r"[a-z]+\d\d"),
        ("www.wolf.org", "ONLINE_ID", r"www\.\w+\.example\.org"),
        ("support", "USER_NAME", r"\[USER_NAME_1\]"),
    ],
)
def test_other_identifiers(surface, label, shape):
    out = one(surface, label)
    assert re.fullmatch(shape, out), out
    assert "wolf" not in out.lower()


def test_a_scope_never_runs_out_of_domains_or_names():
    book = CorpusBook()
    out = [one(f"somebody{i}@firm{i}{'abcdefghij'[i % 10] * 3}.com", "EMAIL_ADDRESS", book=book) for i in range(500)]
    assert len({a.partition("@")[2] for a in out}) == 500
    assert not any("[" in a for a in out)


@given(
    st.text(max_size=30).filter(lambda t: not set("{}|") & set(t) and t.strip()),
    st.sampled_from(["URL", "EMAIL_ADDRESS", "ONLINE_ID", "USER_NAME", "IP_ADDRESS", "HTTP_COOKIE"]),
)
def test_whatever_is_found_something_comes_out(surface, label):
    out = one(surface, label)
    assert out.strip()


@pytest.mark.parametrize(
    "text",
    [
        "{Rose Rose|PERSON} of {Lima|LOCATION}. {Rose|PERSON} wrote from {rose.rose@acme.com|EMAIL_ADDRESS}.",
        "{harriet.sandringham@acme.com|EMAIL_ADDRESS}, then {Ms Sandringham|PERSON}, {x.y+kite@acme.com|EMAIL_ADDRESS}",
        "{8.8.8.8|IP_ADDRESS} {8.8.8.9|IP_ADDRESS} {9.9.9.9|IP_ADDRESS} {1.1.1.1|IP_ADDRESS} {2.2.2.2|IP_ADDRESS}",
    ],
)
def test_with_a_book_the_same_document_gives_the_same_again(text):
    for number in range(40):
        book, key = CorpusBook(), number.to_bytes(32)
        first = play(text, key=key, scope="s", book=book)
        assert play(text, key=key, scope="s", book=book) == first
