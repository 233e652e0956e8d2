"""Who asks for it gets one pseudonym of a person in all documents, and nobody else does."""

from __future__ import annotations

import pytest

from allonym.files import anonymize_path
from allonym.pipeline import anonymize, anonymize_many
from allonym.policy import Policy, TermList
from allonym.vault import Vault

KEY = b"a key only for the tests, 32 byte"
TEXTS = [f"Victor Okafor {what}. Mr Okafor agreed." for what in ("called", "wrote", "left", "paid", "came")]
NAMES = (TermList("PERSON", ("Victor Okafor",)),)
POLICY = Policy.load("pseudonyms").with_(detectors=("lexicon", "rules"), dictionary=NAMES)


def list_names(texts):
    return [" ".join(text.split()[:2]) for text in texts]


def test_without_a_scope_each_document_has_its_own():
    texts = [done.text for done in anonymize_many(TEXTS, POLICY, key=KEY)]
    assert len(set(list_names(texts))) == len(TEXTS)
    assert all(text.split()[1] in text.split("Mr")[1] for text in texts)
    # It depends on the document alone, and on the key.
    backwards = [done.text for done in anonymize_many(TEXTS[::-1], POLICY, key=KEY)]
    assert backwards[::-1] == texts
    assert anonymize(TEXTS[0], POLICY, key=KEY[::-1]).text != texts[0]


@pytest.mark.parametrize("how", ["scope", "consistent", "vault", "subject"])
def test_whoever_asks_for_it_gets_one_in_all(how, tmp_path):
    policy = POLICY.with_(consistent="scope") if how == "consistent" else POLICY
    if how == "vault":
        with Vault.create(tmp_path / "v", KEY) as vault:
            texts = [anonymize(text, policy, vault=vault).text for text in TEXTS]
    elif how == "subject":
        from allonym.document import Document

        policy = policy.with_(subject="who")
        documents = [Document("", text, {"who": "p1"}) for text in TEXTS]
        texts = [anonymize(document, policy, key=KEY).text for document in documents]
        other = anonymize(Document("", TEXTS[0], {"who": "p2"}), policy, key=KEY).text
        assert list_names([other]) != list_names(texts[:1])
    else:
        texts = [anonymize(text, policy, key=KEY, scope="s" if how == "scope" else "").text for text in TEXTS]
    assert len(set(list_names(texts))) == 1


@pytest.mark.parametrize("batch_size", [1, 1 << 16])
def test_a_table_is_one_unit_and_another_table_another(batch_size, tmp_path):
    def run(name, texts):
        (tmp_path / name).write_text("text\n" + "".join(f"{text}\n" for text in texts))
        target = tmp_path / f"out-{batch_size}-{name}"
        anonymize_path(tmp_path / name, target, POLICY, key=KEY, fields=["text"], batch_size=batch_size)
        return target.read_text().splitlines()[1:]

    first, second = run("a.csv", TEXTS), run("b.csv", TEXTS[1:])
    assert len(set(list_names(first))) == len(set(list_names(second))) == 1
    assert list_names(first)[0] != list_names(second)[0]
    assert run("c.csv", TEXTS) == first  # the name of a file changes nothing
