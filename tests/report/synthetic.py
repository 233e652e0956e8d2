"""A made-up result of a search, in the shape of ``Releases.to_dict()``: 180 releases, 3 population sizes, 60 outcomes."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

POPULATIONS = (1e6, 1e12, 1e18)
CATEGORIES = ("Organization", "Person", "Product", "Location")
FITS = (
    (15.8, 0.889, 0.238),
    (35.3, 0.896, 0.245),
    (58.9, 0.864, 0.237),
    (31.8, 0.865, 0.122),
    (15.4, 0.769, 0.081),
    (27.6, 0.831, 0.117),
)
COMPANIES = ("Quill & Daughters", "Northmoor Tin", "Vale Harbour", "Cobalt Reach", "Larkspur Foods", "Ostrander Rail")
PRODUCTS = ("Lantern", "Tidewater Suite", "Kestrel 9", "Ferrowave", "Morrow Cloud", "Pinewick")
TEXTS = (
    "We signed a five-year supply agreement with {0} this quarter, and the pilot of {1} at two of their plants is ahead of "
    "schedule. Volumes grew in every region, and we now expect the ramp to add about two points to gross margin by the "
    "fourth quarter.",
    "Turning to services, revenue from {1} was up 11%, helped by renewals at {0} and a larger share of annual contracts. "
    "Churn fell for the third quarter in a row.",
    "On capital allocation, we returned cash through buybacks and closed the sale of {1} to {0}. The proceeds pay down the "
    "term loan, and leverage is back under two times.",
)
TOPICS = (
    "guidance, quarter, outlook", "margin, cost, freight", "cloud, subscription, renewals", "buyback, dividend, cash",
    "store, traffic, basket", "trial, patients, enrolment", "fleet, route, fuel", "chips, wafer, node",
    "loan, deposits, rate", "hiring, culture, team",
)  # fmt: skip


def estimate(value, spread=0.0, n=30, method="mean, SD over draws"):
    return {"value": value, "low": value - spread, "high": value + spread, "n": n, "method": method}


def interval(value, low, high):
    return {"value": value, "low": low, "high": high, "n": 1819, "method": "delta method, 95 %"}


def result(steps: int = 30, outcomes: int = 60, seed: int = 7, grids: bool = True) -> dict[str, object]:
    """The same values for the same arguments."""
    rng = np.random.default_rng(seed)
    releases, tables = [], []
    for number, (categories, (theta, alpha, share)) in enumerate(zip(combinations(CATEGORIES, 2), FITS, strict=True)):
        singles = round(1819 * share)
        p = {n: min(1.0, (n / 1819) ** (alpha - 1) * (1.1 + theta / 200)) for n in POPULATIONS}
        tables.append(table(categories, theta, alpha, share, singles, p))
        pace = 1.0 + 0.25 * number
        for step in range(1, steps + 1):
            m = 1.35 * step * (1 - 0.05 * number)
            utility = 1 - 9e-5 * pace * step - 4e-6 * step**1.5 * (1 + number % 3) + rng.normal(0, 6e-6)
            releases.append(
                {
                    "index": len(releases),
                    "categories": list(categories),
                    "swaps": step,
                    "changed": estimate(2.0 * step),
                    "share": estimate(2.0 * step / 1819),
                    "uniques": estimate(m, 0.9),
                    "utility": estimate(utility, 3e-5 * math.sqrt(step)),
                    "distance": estimate(-0.62 * pace * step, 0.1 * step**0.5),
                    "distance_per_chunk": estimate(-0.31 * pace, 0.05),
                    "cosine": estimate(0.952 - 0.006 * number, 0.008),
                    "risk": {f"{n:g}": estimate(1 - p[n] * m / singles, 0.9 * p[n] / singles) for n in POPULATIONS},
                    "bounded": {
                        f"{n:g}": estimate(1 - 0.8 * p[n] * m / singles, 0.7 * p[n] / singles) for n in POPULATIONS
                    },
                    "remaining": {f"{n:g}": estimate(p[n] * (singles - m), p[n]) for n in POPULATIONS},
                    "flags": ["utility above 1"] if utility > 1 else [],
                }
            )
    front = {f"{n:g}": frontier(releases, f"{n:g}") for n in POPULATIONS}
    chosen = next(
        r["index"] for r in releases if r["categories"] == ["Organization", "Product"] and r["swaps"] == steps
    )
    front["1e+12"] = sorted({*front["1e+12"], chosen})
    return {
        "title": "Swapping named entities in 34 earnings calls",
        "corpus": {
            "documents": 34,
            "chunks": 1819,
            "classes": 34,
            "protect": "company",
            "categories": dict.fromkeys(CATEGORIES, "swap") | {"Date": "free", "Event": "fixed"},
            "characters": 812345,
            "changed_words": {"value": 0.0312, "low": 0.0312, "high": 0.0312, "n": 140231, "method": "exact"},
        },
        "settings": {
            "name": "default",
            "read": {"section": "presentation", "threshold": 75.0, "min_size": 120, "max_size": 1200},
            "embed": {"name": "encoder", "covariates": ["industry"], "use": "residual"},
            "mixture": {"family": "spcauchy", "clusters": 10, "min_weight": 0.005, "restarts": 4},
            "exchange": {"need": "any", "partners": "per-category", "counts": "all", "rounds": 4, "cycles": True},
            "search": {"size": 2, "draws": 30, "points": 30, "population": list(POPULATIONS), "risk": "paper"},
        },
        "warnings": [
            "3 documents have no value of company that occurs in their text; nothing was suppressed there",
            "cluster 9 holds chunks of one document only: none of them can be exchanged",
        ],
        "populations": list(POPULATIONS),
        "tables": tables,
        "stability": {
            "sentences": [
                "The highest is Organization + Product at N = 1e+06 to 1e+18.",
                "67 % of the pairs stand in the same order at N = 1e+06 to 1e+18.",
                "Given the 95 % intervals, the order of 20 % to 47 % of the pairs is settled.",
            ]
        },
        "mixture": mixture(rng),
        "releases": releases,
        "frontier": front,
        "chosen": chosen,
        "population": 1e12,
        "why": [
            "Exchanging Organization + Product in 30 swaps changes 60 chunks (3 %), among them 36 of 446 sample uniques.",
            "It is on the frontier: none of the 180 releases is less risky and no less useful, or the other way round.",
        ],
        "attacks": attacks(),
        "task": {
            "label": "sector",
            "classes": 9,
            "chunks": 1204,
            "chance": 0.19,
            "before": interval(0.812, 0.789, 0.833),
            "learnt": interval(0.806, 0.783, 0.827),
            "applied": interval(0.799, 0.776, 0.821),
        },
        "dropped": [{"categories": ["Event", "Product"], "reason": "no two chunks are a valid pair"}],
        "released": {
            "utility": 0.9951,
            "distance": -24.1,
            "cosine": 0.941,
            "flags": [],
            "changed": 62,
            "exchanged": 58,
            "holding": 813,
            "swaps": 30,
            "words": estimate(0.0312),
            "uniques": 37,
            "risk": {f"{n:g}": estimate(0.98 + 0.005 * i) for i, n in enumerate(POPULATIONS)},
            "remaining": {f"{n:g}": estimate(66.1 / 10**i) for i, n in enumerate(POPULATIONS)},
            "entities": {"Organization": 1210, "Product": 733},
            "moved": {"Organization": 71, "Product": 49},
        },
        "fallback": {"pseudonym": 61, "generalise": 17, "suppress": 4},
        "leftover": {"no other document in the cluster": 23, "all partners hold the same entity": 11},
        "outcomes": [outcome(i, rng) for i in range(outcomes)],
        "grid": grid(releases) if grids else [],
        "timings": {"read": 41.2, "embed": 63.9, "mixture": 5.1, "exchange": 12.7, "check": 22.4},
    }


def table(categories, theta, alpha, share, singles, p):
    return {
        "categories": list(categories),
        "n": 1204,
        "k": singles + 118,
        "singles": singles,
        "doubles": round(singles * 0.11),
        "alone": singles + 37,
        "theta": interval(theta, theta * 0.55, theta * 1.7),
        "alpha": interval(alpha, alpha - 0.031, alpha + 0.024),
        "log_likelihood": -1873.4 - theta,
        "status": "interior",
        "share": share,
        "p": {f"{n:g}": interval(v, v * 0.8, min(1, v * 1.24)) for n, v in p.items()},
        "bounded": {f"{n:g}": interval(0.8 * v, 0.65 * v, 0.92 * v) for n, v in p.items()},
        "population": {f"{n:g}": interval(v * singles, v * singles * 0.8, v * singles * 1.24) for n, v in p.items()},
    }


def frontier(releases, size):
    kept, least = [], math.inf
    for r in sorted(releases, key=lambda r: -r["utility"]["value"]):
        if r["risk"][size]["value"] < least:
            kept.append(r["index"])
            least = r["risk"][size]["value"]
    return kept


def mixture(rng):
    sizes = [412, 318, 266, 214, 171, 148, 121, 88, 47, 34]
    clusters = [
        {
            "size": size,
            "documents": 1 if i == 8 else min(34, size // 6),
            "weight": size / 1819,
            "rho": float(0.58 + 0.03 * i + rng.normal(0, 0.02)) if i != 9 else 0.9995,
            "x": float(rng.normal()),
            "y": float(rng.normal(0, 0.7)),
            "words": TOPICS[i].split(", "),
            "degenerate": i == 9,
        }
        for i, size in enumerate(sizes)
    ]
    selection = [
        {
            "family": family,
            "clusters": k,
            "left": k,
            "bic": -1.1e6 + 900 * (k - best) ** 2 + lift,
            "icl": -1.1e6 + 1000 * (k - best + 1) ** 2 + lift + 9000,
            "converged": not (family == "pkbd" and k == 18),
            "degenerate": 0,
        }
        for family, best, lift in (("pkbd", 8, 26000), ("spcauchy", 10, 0))
        for k in range(4, 19, 2)
    ]
    return {"family": "spcauchy", "clusters": clusters, "log_likelihood": 551234.25, "selection": selection}


def attacks():
    return [
        {
            "intruder": "entities",
            "before": estimate(0.934, 0.022),
            "after": estimate(0.202, 0.042),
            "table": [377, 1660, 37, 108],
            "exact": 0.0,
            "asymptotic": 3.1e-280,
            "continuity": 4.4e-280,
            "statistic": 1552.2,
            "chance": 0.061,
            "second": estimate(0.341, 0.037),
            "told": {"altered": estimate(0.233, 0.04), "interchanged": estimate(0.287, 0.044)},
            "terms": [["Kestrel 9", 3.21], ["Morrow Cloud", 2.87], ["wafer", 1.42]],
        },
        {
            "intruder": "words",
            "before": estimate(0.888, 0.018),
            "after": estimate(0.564, 0.051),
            "table": [1200, 738, 31, 213],
            "exact": 2.4e-174,
            "asymptotic": 8.9e-143,
            "continuity": 2.1e-142,
            "statistic": 650.0,
            "chance": 0.061,
            "second": None,
            "told": {},
            "terms": [],
        },
    ]


def outcome(i, rng):
    company, other = COMPANIES[i % 6], COMPANIES[(i + 1 + i // 6) % 6]
    product, new = PRODUCTS[(i * 5) % 6], PRODUCTS[(i * 5 + 2) % 6]
    text = "[EXECUTIVE_1] said: " + TEXTS[i % 3]
    before, after = text.format(company, product), text.format(other, new)

    def mark(where, what, category, kind):
        return [where.index(what), where.index(what) + len(what), category, kind]

    operator = "pseudonym" if i % 7 == 3 else "swap"
    pairs = (([company, other], "Organization", "swap"), ([product, new], "Product", operator))
    return {
        "document": i % 34,
        "chunk": 29 * i + 4,
        "cluster": i % 10,
        "before": before,
        "after": after,
        "marks": sorted(mark(after, p[1], c, k) for p, c, k in pairs),
        "marks_before": sorted(mark(before, p[0], c, k) for p, c, k in pairs),
        "partners": [(29 * i + 812) % 1819],
        "cosine": float(np.clip(rng.normal(0.93, 0.03), 0, 1)),
        "distance": float(rng.normal(-0.4, 0.3)),
        "guessed": {"entities": [i % 9 != 0, i % 5 == 0], "words": [i % 11 != 0, i % 2 == 0]},
    }


def grid(releases):
    out = []
    for family in ("pkbd", "spcauchy"):
        for clusters in (10, 20):
            for least in (0.005, 0.01):
                for size in POPULATIONS:
                    fails = clusters == 20 and least == 0.005
                    row = {
                        "threshold": 75.0, "family": family, "clusters": clusters, "min_weight": least, "population": size,
                        "chunks": 1819, "left": clusters - 2, "converged": not fails,
                        "reason": "EM did not converge" if fails else "",
                        "categories": [] if fails else ["Organization", "Product" if size > 1e6 else "Location"],
                        "shares": [] if fails else [{"categories": ["Organization", "Product"], "share": 0.93}],
                        "releases": [] if fails else [
                            {"categories": r["categories"], "swaps": r["swaps"],
                             "utility": r["utility"]["value"] - 1e-4 * clusters * least,
                             "risk": r["risk"][f"{size:g}"]["value"]}
                            for r in releases[:: 2]
                        ],
                    }  # fmt: skip
                    out.append(row)
    return out
