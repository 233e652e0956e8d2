from allonym.detection import detect_each
from allonym.document import Document, Span


def test_a_plain_detector_is_asked_for_each():
    assert detect_each(lambda d: (Span(0, len(d.text), "TERM"),), [Document("", "a"), Document("", "bb")]) == [
        [Span(0, 1, "TERM")],
        [Span(0, 2, "TERM")],
    ]


def test_many_is_used_where_there_is_one():
    class Batched:
        def __call__(self, document):
            raise AssertionError("asked one by one")

        def many(self, documents):
            return [(Span(0, 1, "TERM"),) for _ in documents]

    assert detect_each(Batched(), [Document("", "a")]) == [[Span(0, 1, "TERM")]]
