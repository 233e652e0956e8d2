"""The statistics of a search: the mixture and its clusters, and the marginal tables with their Ewens-Pitman fits.

A map of the clusters, their table, and the criteria by which number and family were chosen; then how unique the chunks
are by each set of categories, over the population sizes (P1 Table 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Literal

from allonym.report import page
from allonym.report.sections import Paragraph, SectionSpec, ValueTable, Warn
from allonym.report.swap.values import Search, map_by_population, name_categories, read_categories, shorten_powers
from allonym.report.values import Plain, Values, format_number, format_power

_COPIES = "At the cap of concentration, so copies of one text rather than a topic: cluster {copies}."
FAMILIES = {"pkbd": "Poisson kernel-based", "spcauchy": "spherical Cauchy"}
SHORT = {"pkbd": "PKB", "spcauchy": "spherical Cauchy"}
_FIELDS = """
    Cluster         | number    | count
    Chunks          | size      | count
    Documents       | documents | count    | How many documents they are from; one only: nobody to exchange with
    Weight          | weight    | share.1
    Concentration ρ | rho       | number.4 | 0: no direction, near 1: all alike
    Remarks         | remark
    Words that stand out | words | | | texts mixture.clusters
"""
_FACTS = {"size": "Chunks", "documents": "Documents", "weight": "Weight", "rho": "Concentration ρ"}


def _describe_mixture(result: Search) -> str:
    mixture = result.get_part("mixture")
    text = "Entities move between chunks of one cluster, so that they land among texts on the same topic"
    if result.get_value("settings.exchange.beyond"):
        text += "; those that find no partner there look in all clusters"
    family = FAMILIES.get(str(mixture.get("family")), str(mixture.get("family", "")))
    text += f". A {family} mixture has {len(mixture.list_rows('clusters'))} clusters"
    if isinstance(likelihood := mixture.get("log_likelihood"), (int, float)):
        text += f"; its log-likelihood is {format_number(float(likelihood), 'number', 1)}"
    return f"{text}."


def _draw_cluster_map(result: Search) -> Iterator[page.Block]:
    clusters = result.list_rows("clusters")
    if not clusters:
        return
    rhos = [float(cluster.get("rho") or 0) for cluster in clusters]
    low, high = min(rhos), max(rhos)
    bubbles = []
    for cluster, rho in zip(clusters, rhos, strict=True):
        x, y, size = (float(cluster.get(name) or 0) for name in ("x", "y", "size"))
        level = (rho - low) / (high - low) if high > low else 0.5
        label, words = f"Cluster {cluster['number']}", list(map(str, cluster.get("words") or ()))
        facts = [(label, cluster.get(name)) for name, label in _FACTS.items()]
        facts += [("Words", ", ".join(words))] if words else []
        degenerate = bool(cluster.get("degenerate"))
        bubbles.append(page.Bubble(x, y, size, level, label, ", ".join(words[:3]), tuple(facts), degenerate))
    yield page.Bubbles(
        "Map of the clusters",
        tuple(bubbles),
        "chunks of the cluster",
        "Concentration ρ",
        (low, high),
        "Near clusters speak of similar things: places are the first two principal directions of the mean directions.",
    )


def _number_and_tag_clusters(result: Search) -> Plain:
    clusters = [Values({**c, "number": n}) for n, c in enumerate(result.list_rows("mixture.clusters"), 1)]
    copies = ", ".join(str(cluster["number"]) for cluster in clusters if cluster.get("degenerate"))
    return {
        "clusters": [{**cluster, "remark": _tag_cluster_problem(cluster)} for cluster in clusters],
        "copies": copies,
    }


def _tag_cluster_problem(cluster: Values) -> page.Cell:
    if cluster.get("degenerate"):
        return page.Tag("at the cap", "warn")
    return page.Tag("one document", "warn") if cluster.get("documents") == 1 else ""


def _draw_selection_criteria(result: Search) -> Iterator[page.Block]:
    fits = result.list_rows("mixture.selection")
    if not fits:
        return
    criterion = str(result.get_value("settings.mixture.criterion") or "bic")
    remaining = len(result.list_rows("mixture.clusters"))
    index, usable = result.get_value("mixture.chosen"), [fit for fit in fits if _is_usable_fit(fit)]
    best = min(usable, key=itemgetter(criterion), default=None) if index is None else fits[index]
    series: dict[tuple[str, str], list[page.Point]] = {}
    for fit in sorted(fits, key=itemgetter("clusters")):
        family, clusters = fit["family"], fit["clusters"]
        label, facts = f"{FAMILIES.get(family, family)}, K = {clusters}", _list_fit_remarks(fit)
        for name in ("bic", "icl"):
            mark: Literal["", "chosen", "hollow"] = "" if _is_usable_fit(fit) else "hollow"
            if fit is best and name == criterion:
                mark = "chosen"
            point = page.Point(clusters, float(fit[name]), label, ((name.upper(), float(fit[name])), *facts), mark)
            series.setdefault((family, name), []).append(point)
    names = sorted({family for family, _ in series})
    yield page.Chart(
        "Number of clusters and family",
        page.Axis("Clusters K at the start", "count"),
        page.Axis("Criterion, the lower the better", "number"),
        tuple(
            page.Series(
                f"{name.upper()}, {SHORT.get(family, family)}",
                tuple(points),
                2 * names.index(family) + (name == "icl"),
                "full" if name == "bic" else "dashed",
            )
            for (family, name), points in series.items()
        ),
        description="BIC weighs fit against the number of parameters; ICL asks for clusters that are distinct as well. "
        "Hollow marks did not converge, or have clusters at the cap of concentration.",
        note=f"The mixture that was used has {remaining} clusters." if remaining else "",
    )


def _is_usable_fit(fit: Plain) -> bool:
    return fit["converged"] and not fit["degenerate"]


def _list_fit_remarks(fit: Plain) -> page.Facts:
    facts: page.Facts = (("Clusters left", fit["left"]),)
    if not fit["converged"]:
        return (*facts, ("Remark", "did not converge"))
    if count := fit["degenerate"]:
        return (*facts, ("Remark", f"{count} at the cap of concentration"))
    return facts


clusters_section = SectionSpec(
    "Clusters",
    "clusters",
    lambda result: result.list_rows("mixture.clusters") or result.list_rows("mixture.selection"),
    (
        Paragraph(_describe_mixture, when="clusters"),
        Warn(_COPIES, "warning", when="copies"),
        _draw_cluster_map,
        ValueTable("Clusters", "clusters", _FIELDS, shown=25, when="clusters"),
        _draw_selection_criteria,
    ),
    _number_and_tag_clusters,
)


_LEAD = (
    "For every set of categories the chunks are counted by the entities they hold. How many cells hold a single chunk, "
    "and how the larger cells are spread, says how many of these uniques would still be unique in a population of N "
    "such texts (the Ewens-Pitman sampling formula)."
)
_INTERVALS = "Below each value: its 95 % interval."
_FITS = """
    Counted by   | key
    θ            | theta   | number.2 | Strength of the Ewens-Pitman formula, 95 % interval
    α            | alpha   | number   | Discount: near 1, new values keep coming; 95 % interval
    s₁ / n       | share   | share.1  | Sample uniques, of all chunks
    s₁           | singles | count    | Cells of one chunk: sample uniques
    s₂           | doubles | count    | Cells of two chunks
    Of one value | alone   | count    | Cells all of whose chunks have one protected value: they point to it
    Cells k      | k       | count    | Cells that hold any chunk
    Chunks n     | n       | count    | Chunks that are counted
    Log-likelihood | log_likelihood | number.1 | Of (2.10)
    Fit          | fit     |          | interior: the maximum lies inside; else at which edge it lies
"""


def _list_table_fits(result: Search) -> list[Plain]:
    return [
        {
            **table,
            "key": result.make_categories_key(read_categories(table)),
            "fit": page.Tag(str(table.get("status", "")), "good" if table.get("status") == "interior" else "warn"),
        }
        for table in result.list_rows("tables")
    ]


def _draw_uniqueness_table(result: Search) -> Iterator[page.Block]:
    formula = "(2.14), their limit for large N" if result.get_value("settings.search.risk") == "paper" else "(2.13)"
    values = {
        "p": "(2.15): population uniques over sample uniques",
        "bounded": "The bounded share: chance that a sample unique is unique at N",
        "population": f"Expected population uniques, {formula}",
    }
    names = {"p": "p", "bounded": "p*", "population": "E S₁"}
    sizes = _list_population_sizes(result)
    columns = [
        page.Column(f"{names[key]}, N = {format_power(size)}", "number", None, hint)
        for size in sizes
        for key, hint in values.items()
    ]
    body = []
    for table in result.list_rows("tables"):
        estimates = {key: map_by_population(table.get(key)) for key in values}
        cells = (estimates[key].get(size) for size in sizes for key in values)
        body.append(page.Row((result.make_categories_key(read_categories(table)), *cells)))
    yield page.Table("Population uniques", (page.Column("Counted by"), *columns), tuple(body), _INTERVALS)


def _list_population_sizes(result: Search) -> list[float]:
    return sorted({size for table in result.list_rows("tables") for size in map_by_population(table.get("p"))})


def _draw_uniqueness_curves(result: Search) -> Iterator[page.Block]:
    if len(_list_population_sizes(result)) < 2:
        return
    series = []
    values = []
    for table in result.list_rows("tables"):
        categories, bounded = read_categories(table), map_by_population(table.get("bounded"))
        name, shares = name_categories(categories), map_by_population(table.get("p"))
        points = (
            page.Point(size, p, f"{name}, N = {format_power(size)}", (("p", p), ("p*", bounded.get(size))))
            for size, p in shares.items()
        )
        series.append(page.Series(name, tuple(points), result.colour_slots[categories], "full"))
        values += [p.value for p in shares.values() if p.value > 0]
    is_steep = bool(values) and max(values) > 30 * min(values)
    yield page.Chart(
        "The share of uniques that stay unique, over the population size",
        page.Axis("Population size N", "power", log=True),
        page.Axis("p of (2.15)", "power", log=True) if is_steep else page.Axis("p of (2.15)", "number", 0),
        tuple(series),
        description="Lines that cross change their order: which categories look riskiest depends on N then.",
    )


def _draw_order_stability(result: Search) -> Iterator[page.Block]:
    if sentences := result.get_value("stability.sentences"):
        p = "p*" if result.risk_key == "bounded" else "p"
        first = f"The sets of categories, in the order of {p}, the share of their uniques that stay unique:"
        texts = (first, *map(shorten_powers, sentences))
        yield page.Section("How firm the order is", tuple(map(page.Text, texts)))


uniqueness_section = SectionSpec(
    "Uniqueness",
    "uniqueness",
    "tables",
    (
        Paragraph(_LEAD),
        ValueTable("Marginal tables and their fit", _list_table_fits, _FITS, _INTERVALS),
        _draw_uniqueness_table,
        _draw_uniqueness_curves,
        _draw_order_stability,
    ),
)
