"""The mixture: a map of its clusters, their table, and the criteria by which number and family were chosen."""

from __future__ import annotations

from typing import Literal

from allonym.report.numbers import write
from allonym.report.page import Block, Cell, Column, Facts, Notice, Row, Section, Table, Tag, Text
from allonym.report.plots import Axis, Bubble, Bubbles, Chart, Point, Series
from allonym.report.swap.given import Plain, part, rows

FAMILIES = {"pkbd": "Poisson kernel-based", "spcauchy": "spherical Cauchy"}
SHORT = {"pkbd": "PKB", "spcauchy": "spherical Cauchy"}


def clusters_section(result: Plain, *, words: bool = True) -> Section | None:
    """Clusters as a map and as a table; ``words`` of the corpus may be left out."""
    mixture = part(result, "mixture")
    found = rows(mixture, "clusters")
    selection = rows(mixture, "selection")
    if not found and not selection:
        return None
    blocks: list[Block] = []
    if found:
        family = FAMILIES.get(str(mixture.get("family")), str(mixture.get("family", "")))
        beyond = part(part(result, "settings"), "exchange").get("beyond")
        said = "Entities move between chunks of one cluster, so that they land among texts on the same topic"
        said += "; those that find no partner there look in all clusters. " if beyond else ". "
        said += f"A {family} mixture has {len(found)} clusters"
        if isinstance(likelihood := mixture.get("log_likelihood"), (int, float)):
            said += f"; its log-likelihood is {write(float(likelihood), 'number', 1)}"
        blocks.append(Text(f"{said}."))
        if loose := [i for i, c in enumerate(found, 1) if c.get("degenerate")]:
            names = ", ".join(str(i) for i in loose)
            blocks.append(
                Notice(
                    f"At the cap of concentration, so copies of one text rather than a topic: cluster {names}.",
                    "warning",
                )
            )
        blocks += [_map(found, words), _table(found, words)]
    if selection:
        criterion = str(part(part(result, "settings"), "mixture").get("criterion", "bic"))
        blocks.append(_criteria(mixture, selection, len(found), criterion))
    return Section("Clusters", tuple(blocks), "clusters")


def _map(found: list[Plain], words: bool) -> Bubbles:
    rhos = [float(c.get("rho") or 0) for c in found]
    low, high = min(rhos), max(rhos)
    bubbles = tuple(
        Bubble(
            float(c.get("x") or 0),
            float(c.get("y") or 0),
            float(c.get("size") or 0),
            (rho - low) / (high - low) if high > low else 0.5,
            f"Cluster {i}",
            ", ".join(str(w) for w in (c.get("words") or ())[:3]) if words else "",
            _facts(c, words),
            bool(c.get("degenerate")),
        )
        for i, (c, rho) in enumerate(zip(found, rhos, strict=True), 1)
    )
    return Bubbles(
        "Map of the clusters",
        bubbles,
        "chunks of the cluster",
        "Concentration ρ",
        (low, high),
        "Near clusters speak of similar things: places are the first two principal directions of the mean directions.",
    )


def _facts(cluster: Plain, words: bool) -> Facts:
    out: list[tuple[str, Cell]] = [
        ("Chunks", cluster.get("size")),
        ("Documents", cluster.get("documents")),
        ("Weight", cluster.get("weight")),
        ("Concentration ρ", cluster.get("rho")),
    ]
    if words and cluster.get("words"):
        out.append(("Words", ", ".join(str(w) for w in cluster["words"])))
    return tuple(out)


def _table(found: list[Plain], words: bool) -> Table:
    columns = [
        Column("Cluster", "count"),
        Column("Chunks", "count"),
        Column("Documents", "count", None, "How many documents they are from; one only: nobody to exchange with"),
        Column("Weight", "share", 1),
        Column("Concentration ρ", "number", 4, "0: no direction, near 1: all alike"),
        Column("Remarks"),
    ]
    if words:
        columns.append(Column("Words that stand out"))
    body = []
    for i, c in enumerate(found, 1):
        remark: Tag | str = Tag("at the cap", "warn") if c.get("degenerate") else ""
        if not remark and c.get("documents") == 1:
            remark = Tag("one document", "warn")
        cells = [i, c.get("size"), c.get("documents"), c.get("weight"), c.get("rho"), remark]
        body.append(Row((*cells, *([", ".join(str(w) for w in c.get("words") or ())] if words else []))))
    return Table("Clusters", tuple(columns), tuple(body), shown=25)


def _criteria(mixture: Plain, selection: list[Plain], left: int, criterion: str) -> Chart:
    series: dict[tuple[str, str], list[Point]] = {}
    family = str(mixture.get("family", ""))
    used = mixture.get("chosen")
    usable = [s for s in selection if _usable(s, criterion)]
    best = selection[used] if isinstance(used, int) else min(usable, key=lambda s: float(s[criterion]), default=None)
    for s in sorted(selection, key=lambda s: int(s.get("k") or s.get("clusters") or 0)):
        k = int(s.get("k") or s.get("clusters") or 0)
        for name in ("bic", "icl"):
            if not isinstance(s.get(name), (int, float)):
                continue
            own = str(s.get("family", family))
            facts: list[tuple[str, Cell]] = [(name.upper(), float(s[name]))]
            facts += [("Clusters left", s["left"])] if "left" in s else []
            if not s.get("converged", True):
                facts.append(("Remark", "did not converge"))
            elif s.get("degenerate"):
                facts.append(("Remark", f"{s['degenerate']} at the cap of concentration"))
            mark: Literal["", "chosen", "hollow"] = (
                "chosen" if s is best and name == criterion else "" if _usable(s, name) else "hollow"
            )
            label = f"{FAMILIES.get(own, own)}, K = {k}"
            series.setdefault((own, name), []).append(Point(k, float(s[name]), label, tuple(facts), mark))
    names = sorted({own for own, _ in series})
    return Chart(
        "Number of clusters and family",
        Axis("Clusters K at the start", "count"),
        Axis("Criterion, the lower the better", "number"),
        tuple(
            Series(
                f"{name.upper()}, {SHORT.get(own, own)}",
                tuple(points),
                2 * names.index(own) + (name == "icl"),
                "full" if name == "bic" else "dashed",
            )
            for (own, name), points in series.items()
        ),
        (),
        "BIC weighs fit against the number of parameters; ICL asks for clusters apart as well. Hollow marks did not "
        "converge, or have clusters at the cap of concentration.",
        note=f"The mixture that was used has {left} clusters." if left else "",
    )


def _usable(row: Plain, name: str) -> bool:
    return isinstance(row.get(name), (int, float)) and bool(row.get("converged", True)) and not row.get("degenerate")
