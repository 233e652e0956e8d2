"""A classifier without layers, whose answer for each piece of its vocabulary is set by hand."""

import pytest

import allonym
from allonym.detection.adapters import transformers as adapter
from allonym.document import Document
from allonym.errors import DataError, PolicyError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"),
]

PIECES = {
    "[PAD]": "O",
    "[UNK]": "O",
    "[CLS]": "O",
    "[SEP]": "O",
    "ada": "B-PER",
    "cyd": "B-PER",
    "brook": "I-PER",
    "##side": "O",
    "qui": "O",
    "##ll": "B-ORG",
    "came": "O",
    "to": "O",
    ".": "O",
    "veldt": "B-LOC",
}
SURE = 12.0


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    pytest.importorskip("torch", reason="torch is not installed")
    hub = pytest.importorskip("transformers", reason="transformers is not installed")

    def build(pieces=PIECES, name="model", head=True, sure=SURE):
        import torch

        folder = tmp_path_factory.mktemp(name)
        (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
        tokenizer = hub.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), vocab=str(folder / "vocab.txt"))
        tags = sorted(set(pieces.values()))
        config = hub.BertConfig(
            vocab_size=len(pieces),
            hidden_size=len(pieces),
            num_hidden_layers=0,
            num_attention_heads=1,
            intermediate_size=4,
            max_position_embeddings=64,
            id2label=dict(enumerate(tags)),
            label2id={tag: i for i, tag in enumerate(tags)},
        )
        model = (hub.BertForTokenClassification if head else hub.BertModel)(config)
        with torch.no_grad():
            embeddings = model.bert.embeddings if head else model.embeddings
            embeddings.word_embeddings.weight.copy_(torch.eye(len(pieces)))
            embeddings.position_embeddings.weight.zero_()
            embeddings.token_type_embeddings.weight.zero_()
            if head:
                model.classifier.weight.zero_()
                model.classifier.bias.zero_()
                for i, tag in enumerate(pieces.values()):
                    model.classifier.weight[tags.index(tag), i] = sure
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return f'model = "{folder}"'

    return build


@pytest.fixture(scope="module")
def model(make):
    return make()


def found(policy, text):
    return [(text[s.start : s.end], s.label) for s in adapter.build_detector(policy)(Document("", text))]


def test_entities_are_whole_words_put_together(model, policy):
    one = policy("transformers", model)
    text = "Ada  Brookside came to Quill. Cyd Brook, Ada Ada veldt"
    assert found(one, text) == [
        ("Ada  Brookside", "PERSON"),
        ("Quill", "ORGANIZATION"),
        ("Cyd Brook", "PERSON"),
        ("Ada", "PERSON"),
        ("Ada", "PERSON"),
        ("veldt", "LOCATION"),
    ]
    (span, *_) = adapter.build_detector(one)(Document("", "Ada came"))
    assert (span.source, span.score > 0.99) == ("transformers:model", True)


def test_offsets_count_code_points(model, policy):
    text = "\U0001f600\r\n\0 ÄDA x ada\u0301 \ud800ada"
    assert found(policy("transformers", model), text) == [
        ("ÄDA", "PERSON"),
        ("ada\u0301", "PERSON"),
        ("ada", "PERSON"),
    ]


def test_windows_stitch_to_the_whole(model, policy):
    words = ["came", "Ada", "Brook", "to", "Quill", "."] * 60
    text = " ".join(words)
    assert found(policy("transformers", model), text) == [("Ada Brook", "PERSON"), ("Quill", "ORGANIZATION")] * 60


def test_many_is_each_for_itself_in_any_order(model, policy):
    texts = ["", "Ada came", "came to Quill. " * 40, " ", "veldt"]
    documents = [Document("", text) for text in texts]
    alone = adapter.build_detector(policy("transformers", model))
    batched = adapter.build_detector(policy("transformers", model, "batch_size = 3"))
    each = [alone(document) for document in documents]
    assert alone.many(documents) == each
    assert alone.many(documents[::-1]) == each[::-1]
    places = [[(s.start, s.end, s.label) for s in spans] for spans in each]
    assert [[(s.start, s.end, s.label) for s in spans] for spans in batched.many(documents)] == places
    assert [len(p) for p in places] == [0, 1, 40, 0, 1]


def test_the_threshold_says_how_sure_a_word_must_be(make, policy):
    weak = make(name="weak", sure=0.55)
    probability = adapter.build_detector(policy("transformers", weak, "threshold = 0.01"))(Document("", "ada"))[0].score
    assert 0.5 < probability < 1
    assert found(policy("transformers", weak, "threshold = 0.99"), "ada") == []


def test_labels_of_the_privacy_filter(make, policy):
    names = ("person", "address", "email", "phone", "url", "date")
    pieces = {"[PAD]": "O", "[UNK]": "O", "[CLS]": "O", "[SEP]": "O"}
    for i, name in enumerate((*(f"private_{n}" for n in names), "account_number", "secret")):
        # Two words of an entity, then one alone.
        pieces |= {f"b{i}": f"B-{name}", f"e{i}": f"E-{name}", f"s{i}": f"S-{name}", f"i{i}": f"I-{name}"}
    one = policy("transformers", make(pieces, "privacy"))
    text = "b0 i0 e0 s0 b1 e1 s2 s3 s4 s5 s6 s7"
    assert found(one, text) == [
        ("b0 i0 e0", "PERSON"),
        ("s0", "PERSON"),
        ("b1 e1", "STREET_ADDRESS"),
        ("s2", "EMAIL_ADDRESS"),
        ("s3", "PHONE_NUMBER"),
        ("s4", "URL"),
        ("s5", "DATE"),
        ("s6", "ACCOUNT_NUMBER"),
        ("s7", "SECRET"),
    ]


def test_the_library_s_own_label_set_of_the_privacy_filter_is_mapped():
    config = pytest.importorskip(
        "transformers.models.openai_privacy_filter.configuration_openai_privacy_filter",
        reason="this transformers has no privacy filter",
    )
    from allonym.detection.adapters.labels import LabelMap
    from allonym.policy import Policy

    tags = [adapter._parse_tag(tag) for tag in config.OPENAI_PRIVACY_FILTER_NER_LABELS]
    labels = LabelMap(Policy(name="x"), "transformers", model_labels={label for _, label in tags if label != "O"})
    assert {place for place, _ in tags} == {"", "B", "I", "E", "S"}
    assert len({labels(label) for _, label in tags if label != "O"}) == 8


def test_labels_without_a_meaning_must_be_mapped(make, policy):
    plain = make({p: f"LABEL_{int(t != 'O')}" for p, t in PIECES.items()}, "plain")
    with pytest.raises(PolicyError, match="labels LABEL_0, LABEL_1 are in no scheme"):
        adapter.build_detector(policy("transformers", plain))
    with pytest.raises(PolicyError, match="no label of the model means that a word is no entity"):
        adapter.build_detector(policy("transformers", plain, 'labels = { LABEL_0 = "TERM", LABEL_1 = "PERSON" }'))
    one = policy("transformers", plain, 'labels = { LABEL_0 = "", LABEL_1 = "PERSON" }')
    assert found(one, "came Ada Brook to") == [("Ada Brook", "PERSON")]


def test_a_model_without_a_classifier_or_without_files(make, policy, tmp_path):
    with pytest.raises(DataError, match="holds no weights of a token classifier"):
        adapter.build_detector(policy("transformers", make(name="bare", head=False)))
    with pytest.raises(DataError, match=r"cannot load the model 'nobody/nothing'.*allow_download"):
        adapter.build_detector(policy("transformers", 'model = "nobody/nothing"'))


def test_from_the_policy_to_the_text(model, policy):
    one = policy("transformers", model, rest='[default]\noperator = "tag"')
    assert allonym.anonymize("Ada Brook came to Quill.", one).text == "[PERSON_1] came to [ORGANIZATION_1]."
