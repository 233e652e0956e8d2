"""The component ``allonym`` of spaCy's pipelines: ``nlp.add_pipe("allonym", config={"policy": "default"})``.

Installing allonym is enough: spaCy finds the component by its entry point.
"""
# spaCy checks a component's config by its annotations, so they must not be strings.

from collections.abc import Callable

from allonym.document import Document
from allonym.errors import require_extra
from allonym.integrations.spacy import mark_spans
from allonym.pipeline import detect
from allonym.policy import Policy

with require_extra("the component of spaCy's pipelines", "spacy"):
    from spacy.language import Language
    from spacy.tokens import Doc


@Language.factory("allonym", default_config={"policy": "default", "ents": True}, assigns=["doc.ents"])
def component(nlp: Language, name: str, policy: str, ents: bool) -> Callable[[Doc], Doc]:
    """Make the component, which marks the findings of :func:`allonym.detect` as ``to_spacy`` does.

    Args:
        nlp, name: passed by spaCy.
        policy: a preset's name or a TOML file's path.
        ents: whether the findings replace ``doc.ents``; else only ``doc.spans["allonym"]`` is written.

    Raises:
        PolicyError, UnknownNameError: the policy is not valid or not known.
    """
    return _Finder(Policy.load(policy), ents)


class _Finder:
    """The component; it may be pickled, as ``nlp.pipe(..., n_process=2)`` does."""

    def __init__(self, policy: Policy, ents: bool) -> None:
        self._policy, self._ents = policy, ents

    def __call__(self, doc: Doc) -> Doc:
        """Mark the findings in a ``Doc`` and return it."""
        return mark_spans(doc, detect(Document("", doc.text), self._policy), ents=self._ents)
