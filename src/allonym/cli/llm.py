"""``allonym llm``: the endpoint of a language model, its batch files, and texts that it attacks and rewrites."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.evaluate.guesses import ATTRIBUTE, KIND, PERSON, Model, read_profiles
from allonym.cli.evaluate.options import Output, Source
from allonym.cli.harden import rewrite_source
from allonym.cli.options import KEY_FILE, ORIGINALS, TextFields, declare_output, declare_plans, declare_policy, read_key
from allonym.cli.outputs import check_outputs
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, print_note, print_table, report_failure
from allonym.errors import EndpointError, UsageError
from allonym.partfile import open_part_file
from allonym.settings import REQUIRED, declare_setting
from allonym.text.words import count_nouns

if TYPE_CHECKING:
    from allonym.llm import Client
    from allonym.policy import Policy

_GREETING = 'Answer with this JSON object and nothing else: {"greeting": "hello"}'


@click.group(short_help="Check a language model's endpoint; use batch files; rewrite texts.")
def llm() -> None:
    """Work with the language model that a policy's table [llm] names.

    \b
    Examples:
      allonym llm check --policy mine.toml
      allonym llm batch write calls/ requests.jsonl --policy mine.toml --key-file secret.key
      allonym llm batch read results.jsonl --policy mine.toml --key-file secret.key
      allonym llm rewrite original.jsonl safe.jsonl --policy mine.toml --send -o hard.jsonl
    """


@llm.command(short_help="Send one harmless request and report the result.")
@take_options
def check(*, policy: str = declare_policy()) -> None:
    """Send one harmless request; report how long the answer took and how the endpoint returns JSON.

    The exit code is 1 if the endpoint gives no answer or no JSON.

    \b
    Example:
      allonym llm check --policy mine.toml
    """
    from time import monotonic

    from allonym.llm import Client, Request
    from allonym.llm.answers import parse_answer
    from allonym.llm.templates import TEXT, make_object_schema
    from allonym.policy import Policy

    client = Client(Policy.load(policy).llm)
    schema = make_object_schema({"greeting": TEXT})
    start = monotonic()
    reply = client.ask(Request((("user", _GREETING),), schema, "greeting"))
    seconds = monotonic() - start
    client.close()
    answer = parse_answer(reply.content)
    fits = answer is not None and isinstance(answer.get("greeting"), str)
    rows = [
        ("seconds", f"{seconds:.2f}"),
        ("JSON mode", client.json_mode),
        ("answer", "fits" if fits else "does not fit"),
        ("prompt tokens", reply.prompt_tokens),
        ("completion tokens", reply.completion_tokens),
        ("retries", client.usage["retries"]),
    ]
    print_table(["what", "result"], rows)
    if not fits:
        raise EndpointError("llm: the endpoint answers, but not with the requested JSON")


@llm.command(short_help="Attack anonymised texts, and generalise what gave them away.")
@take_options
def rewrite(
    *,
    source: Source,
    subject: str | None = declare_setting(None, "metadata field with the subject of each text", option="KEY"),
    attribute: tuple[str, ...] = ATTRIBUTE,
    person: str = PERSON,
    kind: str = KIND,
    rounds: int = declare_setting(4, "most rounds of rewriting", low=0, option="N"),
    model: Model,
    send: bool = declare_setting(False, "send the anonymised texts to the endpoint; without it nothing is sent"),
    target: Path | None = declare_output(option="-o, --output, --out PATH"),
    plans: Path | None = declare_plans("new file"),
    originals: bool = ORIGINALS,
    output: Output,
) -> None:
    """Let a language model attack ANONYMISED, and word more generally the phrases that gave something away.

    Round by round, the model infers the attributes and names the phrases that it knows them by; then it proposes more
    general words for these phrases. Proposals that do more than generalise or remove are refused. Nothing else of the
    texts changes. It stops when the attack fails, or after --rounds. For English texts.

    An attribute counts as inferred if the guess is right; without a true value, if the model names phrases of the text.
    A text about which the model gives no usable answer counts as found. The last attacker is that of the rounds: judge
    the result by others, too (allonym evaluate linkage, guess).

    \b
    Examples:
      allonym llm rewrite original.jsonl safe.jsonl --policy mine.toml --send -o hard.jsonl
      allonym llm rewrite original.jsonl safe.jsonl --attribute age=profile.age --attribute place=profile.town
        --policy mine.toml --key-file secret.key --send -o hard.jsonl --plans plans.jsonl --report rounds.html
    """
    if originals and plans is None:
        raise click.UsageError("--originals requires --plans")
    if target is None and plans is None and not output.paths:
        raise click.UsageError("an output is required: -o OUT, --plans, --report or --json")
    from allonym.files.items import check_targets_free

    outputs = [path for path in (target, plans) if path is not None]
    check_outputs(outputs, source.paths, overwrite=True)
    check_targets_free([path for path in outputs if not path.is_dir()], [], output.overwrite)
    output.check_writable(*source.paths, *outputs)
    client = model.open_client()
    from allonym.evaluate.adversarial import rewrite_adversarially
    from allonym.files.output import LinesFile
    from allonym.intruder.grounds import ASKED

    pairs = source.read_pairs()
    attributes, profiles = read_profiles(pairs, attribute)
    subjects = pairs.labels(subject) if subject else None
    what = f"{len(pairs.anonymised)} anonymised texts go to {client.address}, in up to {rounds} rounds"
    if not send:
        raise click.UsageError(f"--send is required: {what}; originals and metadata stay here")
    print_note(f"{what}; originals and metadata stay here")
    with output.show_progress("rounds") as advance:
        result = rewrite_adversarially(
            pairs.original,
            pairs.anonymised,
            client,
            profiles=profiles,
            subjects=subjects,
            attributes=attributes or ASKED,
            person=person,
            kind=kind,
            rounds=rounds,
            advance=advance,
        )
    if target is not None:
        rewrite_source(source, pairs, [text.plan for text in result.texts], target, output.overwrite)
    if plans is not None:
        lines = LinesFile(plans, private=originals)
        for name, text in zip(pairs.ids, result.texts, strict=True):
            row = {"id": name, "state": text.state, **text.plan.to_dict(originals=originals)}
            lines.write(format_json_line(row))
        lines.finish()
    output.write_measure("rewriting", result.to_dict())


@llm.group(short_help="Write requests and read results as batch files.")
def batch() -> None:
    """Write the requests of a run as a batch file, and read the results into the cache.

    \b
    Example:
      allonym llm batch write calls/ requests.jsonl --policy mine.toml --key-file secret.key
    """


@batch.command(short_help="Write the requests that a run would make.")
@take_options
def write(
    source: str,
    out: Path = declare_setting(REQUIRED, "file of requests", noun="new file", option="<OUT.jsonl>"),
    *,
    policy: str = declare_policy(),
    texts: TextFields,
    key_file: Path | None = KEY_FILE,
) -> None:
    """Write the requests that `allonym anonymize SOURCE` would make now and that the cache cannot answer.

    Nothing is sent. Some requests need the answer to an earlier one: read the results, and write again until there
    are none. OUT contains the texts to be sent, unencrypted.

    \b
    Example:
      allonym llm batch write calls/ requests.jsonl --policy mine.toml --key-file secret.key
    """
    from allonym.llm import Recorded, recording, unlocked
    from allonym.llm.cache import format_batch_lines
    from allonym.pipeline import anonymize

    chosen, key, secret, _ = _load_policy_and_client(policy, key_file)
    waiting = count = 0
    with recording() as requests, unlocked(secret):
        for document in texts.read_documents(source):
            count += 1
            try:
                anonymize(document, chosen, key=key)
            except Recorded:
                waiting += 1
    with open_part_file(out) as part:
        for line in format_batch_lines(requests):
            part.write(line.encode("utf-8"))
    requests_line = f"{count_nouns(len(requests), 'request')} for {waiting} of {count_nouns(count, 'document')}"
    print_note(f"{requests_line}; the others need no answer", label="written:")


@batch.command(short_help="Read the results of a batch into the cache.")
@take_options
def read(
    results: tuple[Path, ...] = declare_setting(REQUIRED, "files of results", noun="file", option="<RESULTS.jsonl>"),
    *,
    policy: str = declare_policy(),
    key_file: Path | None = KEY_FILE,
) -> None:
    """Read the results of a batch into the policy's cache, so that the run needs no network for them.

    The policy and the key must be the same as for writing the requests.

    \b
    Example:
      allonym llm batch read results.jsonl --policy mine.toml --key-file secret.key
    """
    from allonym.llm.cache import store_results

    *_, client = _load_policy_and_client(policy, key_file)
    totals: Counter[str] = Counter()
    for path in results:
        with path.open(encoding="utf-8", errors="replace") as file:
            totals.update(store_results(file, client))
    print_table(["results", "count"], list(totals.items()), right=(1,))
    if not totals["kept"]:
        raise report_failure("no result could be used")


def _load_policy_and_client(policy: str, key_file: Path | None) -> tuple[Policy, bytes | str, bytes, Client]:
    """Return the policy, the key, the cache's key, and the client, all of which a batch needs."""
    from allonym.keys import derive_operator_key, require_key
    from allonym.llm import client_for
    from allonym.policy import Policy

    chosen = Policy.load(policy)
    key = require_key(read_key(key_file), "llm")
    if not chosen.llm["cache"]:
        raise UsageError(f"policy {chosen.name}: llm.cache, the folder for answers, is required for batches")
    secret = derive_operator_key(key, "llm cache")
    return chosen, key, secret, client_for(chosen.llm, secret)
