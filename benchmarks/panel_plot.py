"""The plot of the league: how often the adaptive intruder is right against how much of the content is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from allonym.stats import Estimate

_COLOURS = {"ours": "#0b6e4f", "peer": "#4a4e69", "baseline": "#b5651d"}


def draw_league(points: Mapping[str, tuple[str, Estimate, Estimate]], chance: float, texts: int, path: Path) -> None:
    """Write the plot, as PNG or SVG by the name of the file.

    Args:
        points: name of a version to its kind (a key of the colours), content kept, and share identified; 0 to 1.
        chance: what guessing reaches.
        texts: how many were judged.
        path: where to.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "panel"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 6.4), dpi=130)
    for kind, kept, risk in points.values():
        axes.errorbar(
            kept.value, risk.value,
            xerr=[[kept.value - kept.low], [kept.high - kept.value]],
            yerr=[[risk.value - risk.low], [risk.high - risk.value]],
            fmt={"ours": "o", "peer": "s", "baseline": "^"}[kind], color=_COLOURS[kind], markersize=6,
            elinewidth=0.8, alpha=0.9,
        )  # fmt: skip
    axes.axhline(chance, color="#888888", linewidth=1, linestyle=":")
    across = axes.get_yaxis_transform()
    axes.text(0.005, chance + 0.008, f"guessing {chance:.2f}", color="#555555", fontsize=8, transform=across)
    _write_labels(axes, points)
    axes.set_xlim(right=1.02)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("content kept: share of the originals' content words that are still there →")
    axes.set_ylabel("identified by the adaptive intruder (lower is safer)")
    axes.set_title(f"Adaptive risk against content kept, {texts} descriptions of people, 95 % intervals", fontsize=11)
    names = {"ours": "allonym", "peer": "other tools", "baseline": "originals and masking baselines"}
    handles = [
        pyplot.Line2D([], [], marker=mark, color=_COLOURS[kind], linestyle="", label=names[kind])
        for kind, mark in (("ours", "o"), ("peer", "s"), ("baseline", "^"))
    ]
    axes.legend(handles=handles, loc="lower left", frameon=False, fontsize=9)
    axes.grid(alpha=0.2)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _write_labels(axes, points) -> None:
    """Write each name beside its point: those of a crowd in a column below them, each with a line to its point."""
    crowd = sorted((n for n, (_, kept, _) in points.items() if kept.value > 0.86), key=lambda n: points[n][1].value)
    height, top = 0.045, 0.78
    for name, (kind, kept, risk) in points.items():
        offset, side = ((7, 8), "left") if kept.value > 0.8 else ((-7, -9 if kind == "baseline" else 8), "right")
        style = {"fontsize": 8, "color": _COLOURS[kind], "va": "center", "ha": side}
        if name not in crowd:
            axes.annotate(name, (kept.value, risk.value), offset, textcoords="offset points", **style)
    for name in crowd:
        kind, kept, risk = points[name]
        at = min(top, risk.value)
        top = at - height
        arrow = {"arrowstyle": "-", "color": _COLOURS[kind], "linewidth": 0.5, "alpha": 0.6, "relpos": (1, 0.5)}
        axes.annotate(
            name, (kept.value, risk.value), (0.87, at), ha="right", va="center", fontsize=8,
            color=_COLOURS[kind], arrowprops=arrow,
        )  # fmt: skip
