"""The mixture: a map of its clusters, their table, and the criteria by which number and family were chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from allonym.report.numbers import format_number
from allonym.report.page import Block, Cell, Facts, Notice, Section, Tag, Text
from allonym.report.plots import Axis, Bubble, Bubbles, Chart, Point, Series
from allonym.report.sections import ValueTable
from allonym.report.values import Plain, list_rows, read_part, read_path

FAMILIES = {"pkbd": "Poisson kernel-based", "spcauchy": "spherical Cauchy"}
SHORT = {"pkbd": "PKB", "spcauchy": "spherical Cauchy"}
_FIELDS = """
    Cluster         | number    | count
    Chunks          | size      | count
    Documents       | documents | count    | How many documents they are from; one only: nobody to exchange with
    Weight          | weight    | share.1
    Concentration ρ | rho       | number.4 | 0: no direction, near 1: all alike
    Remarks         | remark
"""
_FACTS = {"size": "Chunks", "documents": "Documents", "weight": "Weight", "rho": "Concentration ρ"}


def clusters_section(result: Plain, *, texts: bool = True) -> Section | None:
    """Clusters as a map and as a table; words of the corpus may be left out."""
    mixture = read_part(result, "mixture")
    clusters, fits = list_rows(mixture, "clusters"), list_rows(mixture, "selection")
    if not texts:
        clusters = [{**cluster, "words": ()} for cluster in clusters]
    blocks: list[Block] = []
    if clusters:
        fields = _FIELDS + ("Words that stand out | words" if texts else "")
        table = ValueTable("Clusters", lambda _: _list_clusters(clusters), fields, shown=25)
        blocks += [
            _describe_mixture(result, mixture),
            *_draw_copies_warning(clusters),
            _draw_map(clusters),
            table.draw(result),
        ]
    if fits:
        criterion = str(read_path(result, "settings.mixture.criterion") or "bic")
        blocks.append(_draw_criteria(mixture, fits, len(clusters), criterion))
    return Section("Clusters", tuple(blocks), "clusters") if blocks else None


def _describe_mixture(result: Plain, mixture: Plain) -> Text:
    text = "Entities move between chunks of one cluster, so that they land among texts on the same topic"
    if read_path(result, "settings.exchange.beyond"):
        text += "; those that find no partner there look in all clusters"
    family = FAMILIES.get(str(mixture.get("family")), str(mixture.get("family", "")))
    text += f". A {family} mixture has {len(list_rows(mixture, 'clusters'))} clusters"
    if isinstance(likelihood := mixture.get("log_likelihood"), (int, float)):
        text += f"; its log-likelihood is {format_number(float(likelihood), 'number', 1)}"
    return Text(f"{text}.")


def _draw_copies_warning(clusters: list[Plain]) -> Iterator[Notice]:
    if numbers := [str(i) for i, cluster in enumerate(clusters, 1) if cluster.get("degenerate")]:
        names = ", ".join(numbers)
        yield Notice(
            f"At the cap of concentration, so copies of one text rather than a topic: cluster {names}.", "warning"
        )


def _draw_map(clusters: list[Plain]) -> Bubbles:
    rhos = [float(cluster.get("rho") or 0) for cluster in clusters]
    low, high = min(rhos), max(rhos)
    bubbles = []
    for number, (cluster, rho) in enumerate(zip(clusters, rhos, strict=True), 1):
        x, y, size = (float(cluster.get(name) or 0) for name in ("x", "y", "size"))
        level = (rho - low) / (high - low) if high > low else 0.5
        words = ", ".join(str(word) for word in (cluster.get("words") or ())[:3])
        degenerate = bool(cluster.get("degenerate"))
        bubbles.append(Bubble(x, y, size, level, f"Cluster {number}", words, _list_cluster_facts(cluster), degenerate))
    return Bubbles(
        "Map of the clusters",
        tuple(bubbles),
        "chunks of the cluster",
        "Concentration ρ",
        (low, high),
        "Near clusters speak of similar things: places are the first two principal directions of the mean directions.",
    )


def _list_cluster_facts(cluster: Plain) -> Facts:
    facts = tuple((label, cluster.get(name)) for name, label in _FACTS.items())
    words = ", ".join(str(word) for word in cluster.get("words") or ())
    return (*facts, ("Words", words)) if words else facts


def _list_clusters(clusters: list[Plain]) -> list[Plain]:
    lines: list[Plain] = []
    for number, cluster in enumerate(clusters, 1):
        remark: Cell = ""
        if cluster.get("degenerate"):
            remark = Tag("at the cap", "warn")
        elif cluster.get("documents") == 1:
            remark = Tag("one document", "warn")
        lines.append({**cluster, "number": number, "remark": remark})
    return lines


def _draw_criteria(mixture: Plain, fits: list[Plain], remaining: int, criterion: str) -> Chart:
    index = mixture.get("chosen")
    usable = (fit for fit in fits if _is_usable(fit, criterion))
    best = fits[index] if isinstance(index, int) else min(usable, key=lambda fit: float(fit[criterion]), default=None)
    series: dict[tuple[str, str], list[Point]] = {}
    for fit in sorted(fits, key=_read_cluster_count):
        family = str(fit.get("family", mixture.get("family", "")))
        label = f"{FAMILIES.get(family, family)}, K = {_read_cluster_count(fit)}"
        for name in ("bic", "icl"):
            if isinstance(value := fit.get(name), (int, float)):
                mark: Literal["", "chosen", "hollow"] = "" if _is_usable(fit, name) else "hollow"
                if fit is best and name == criterion:
                    mark = "chosen"
                facts = ((name.upper(), float(value)), *_list_remarks(fit))
                point = Point(_read_cluster_count(fit), float(value), label, facts, mark)
                series.setdefault((family, name), []).append(point)
    names = sorted({family for family, _ in series})
    return Chart(
        "Number of clusters and family",
        Axis("Clusters K at the start", "count"),
        Axis("Criterion, the lower the better", "number"),
        tuple(
            Series(
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


def _read_cluster_count(fit: Plain) -> int:
    return int(fit.get("k") or fit.get("clusters") or 0)


def _list_remarks(fit: Plain) -> Facts:
    facts: Facts = (("Clusters left", fit["left"]),) if "left" in fit else ()
    if not fit.get("converged", True):
        return (*facts, ("Remark", "did not converge"))
    if count := fit.get("degenerate"):
        return (*facts, ("Remark", f"{count} at the cap of concentration"))
    return facts


def _is_usable(fit: Plain, name: str) -> bool:
    return isinstance(fit.get(name), (int, float)) and bool(fit.get("converged", True)) and not fit.get("degenerate")
