"""Search for good training options (P5 section 3.1), and measure the importance of each option.

Like P5, the search draws trials with a Bayesian method and measures importance with trees and by correlation. It uses
Optuna's tree-structured Parzen estimator (Bergstra et al. 2011) and the impurity decrease of a random forest. The study
is stored in an SQLite file, so that an interrupted search can continue.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from allonym.errors import UnknownNameError, UsageError, check_names, hide_foreign_errors, require_extra

Value = int | float | str | bool
Objective = Callable[[Mapping[str, Value]], float]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option with its possible values: ``choices``, or from ``low`` to ``high``.

    Attributes:
        log: draw on a logarithmic scale, with ``low`` above 0.
        whole: whole numbers only.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        if self.choices:
            return
        if not self.low < self.high or (self.log and self.low <= 0):
            least = "0 < low < high" if self.log else "low < high"
            raise UsageError(f"{self.name}: choices, or {least} are required, got {self.low:g} and {self.high:g}")

    def scale_to_unit(self, value: Value) -> float:
        """Return the position of a value between the least and the greatest, from 0 to 1."""
        if self.choices:
            return self.choices.index(value) / max(1, len(self.choices) - 1)
        assert isinstance(value, (int, float))
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def format_ends(self) -> tuple[str, str]:
        """Return the least and the greatest value, for display."""
        if self.choices:
            return str(self.choices[0]), str(self.choices[-1])
        return f"{self.low:g}", f"{self.high:g}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One training: its number from 0, its options, its score from 0 to 1, and its duration in seconds."""

    number: int
    values: Mapping[str, Value]
    score: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of an option: its share of the total, and its correlation with the score, or None."""

    name: str
    share: float
    correlation: float | None


def read_space(backend: str, path: Path | None = None) -> tuple[Parameter, ...]:
    """Return the search space of a backend, or of a TOML file with a table per option.

    Raises:
        UsageError: the file is not a search space.
    """
    if path is None:
        tables = tomllib.loads(files("allonym.train").joinpath("spaces.toml").read_text(encoding="utf-8"))
        if backend not in tables:
            raise UnknownNameError("backend", backend, tables)
        return parse_space(tables[backend], "spaces.toml")
    kinds = (UnicodeDecodeError, tomllib.TOMLDecodeError)
    with hide_foreign_errors(f"{path}: cannot be read as TOML", *kinds, error=UsageError):
        return parse_space(tomllib.loads(path.read_text(encoding="utf-8")), str(path))


def parse_space(tables: Mapping[str, object], where: str) -> tuple[Parameter, ...]:
    """Return the parameters of a space from tables by option."""
    out = []
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise UsageError(f"{where}: a table [{name}] is required, got {type(table).__name__}")
        check_names("key", table, ("low", "high", "log", "whole", "choices"), f"{where}, {name}")
        choices = table.get("choices", ())
        if not isinstance(choices, (list, tuple)):
            raise UsageError(f"{where}, {name}: choices must be a list")
        bounds = [table.get(key, 0.0) for key in ("low", "high")]
        if not all(isinstance(b, (int, float)) for b in bounds):
            raise UsageError(f"{where}, {name}: low and high must be numbers")
        flags = bool(table.get("log", False)), bool(table.get("whole", False))
        out.append(Parameter(name, float(bounds[0]), float(bounds[1]), *flags, tuple(choices)))
    if not out:
        raise UsageError(f"{where}: no option to search over")
    return tuple(out)


def import_optuna() -> Any:
    """Import optuna; raise :class:`MissingExtra` if it is not installed."""
    with require_extra("the search", "train"):
        import optuna
    return optuna


def search_parameters(
    objective: Objective,
    space: Sequence[Parameter],
    study: Path,
    *,
    trials: int,
    seed: int = 0,
    name: str = "search",
    report: Callable[[Trial], None] = lambda trial: None,
) -> list[Trial]:
    """Run trials until the study has the given number, and return all of them in order.

    Args:
        objective: returns the score of options, to be maximised. An exception ends the search; the study keeps the
            finished trials.
        study: SQLite file; created if missing, continued if it exists.
        trials: total number of trials, including earlier runs.
        seed: seed of the draws.
        name: name of the study in the file, which may contain several.
        report: called after each trial.

    Raises:
        UsageError: the study has another space.
        DataError: the file is not a study.
    """
    optuna = import_optuna()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study.parent.mkdir(parents=True, exist_ok=True)
    with hide_foreign_errors(f"{study}: not a usable study"):
        optuna_study = optuna.create_study(
            storage=f"sqlite:///{study.resolve()}", study_name=name, direction="maximize", load_if_exists=True
        )
    described = [{**asdict(parameter), "choices": list(parameter.choices)} for parameter in space]
    if optuna_study.user_attrs.setdefault("space", described) != described:
        raise UsageError(f"{study}: the study {name!r} has another search space; name another file")
    optuna_study.set_user_attr("space", described)
    trials_done = _list_finished_trials(optuna, optuna_study)
    optuna_study.sampler = optuna.samplers.TPESampler(seed=seed * 10_007 + len(trials_done))
    while len(trials_done) < trials:
        optuna_study.optimize(lambda trial: objective(_draw_values(trial, space)), n_trials=1)
        trials_done = _list_finished_trials(optuna, optuna_study)
        report(trials_done[-1])
    return trials_done


def _draw_values(trial: Any, space: Sequence[Parameter]) -> dict[str, Value]:
    out: dict[str, Value] = {}
    for p in space:
        if p.choices:
            out[p.name] = trial.suggest_categorical(p.name, list(p.choices))
        elif p.whole:
            out[p.name] = trial.suggest_int(p.name, int(p.low), int(p.high), log=p.log)
        else:
            out[p.name] = trial.suggest_float(p.name, p.low, p.high, log=p.log)
    return out


def _list_finished_trials(optuna: Any, study: Any) -> list[Trial]:
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    return [Trial(t.number, dict(t.params), float(t.value), t.duration.total_seconds()) for t in complete]


def rank_options(trials: Sequence[Trial], space: Sequence[Parameter], seed: int = 0) -> list[Importance]:
    """Return the options by importance, greatest first; shares sum to 1 unless all trials are equal.

    Args:
        trials: of :func:`search_parameters`; fewer than two give an empty list.
        seed: seed of the random forest.
    """
    if len(trials) < 2:
        return []
    with require_extra("the importance of options", "train"):
        from sklearn.ensemble import RandomForestRegressor
    rows = [[p.scale_to_unit(trial.values[p.name]) for p in space] for trial in trials]
    scores = [trial.score for trial in trials]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forest = RandomForestRegressor(n_estimators=100, random_state=seed).fit(rows, scores)
    shares = [float(share) for share in forest.feature_importances_]
    columns = list(zip(*rows, strict=True))
    importances = [Importance(p.name, shares[i], _correlate(columns[i], scores)) for i, p in enumerate(space)]
    return sorted(importances, key=lambda item: (-item.share, item.name))


def _correlate(a: Sequence[float], b: Sequence[float]) -> float | None:
    try:
        return statistics.correlation(a, b)
    except statistics.StatisticsError:  # one of them is constant
        return None


def format_trials(trials: Sequence[Trial], space: Sequence[Parameter]) -> str:
    """Return the trials as CSV: number, score, seconds, and a column per option."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "score", "seconds", *(p.name for p in space)])
    for t in trials:
        writer.writerow([t.number, f"{t.score:.6f}", f"{t.seconds:.1f}", *(t.values[p.name] for p in space)])
    return out.getvalue()


def plot_trials(trials: Sequence[Trial], space: Sequence[Parameter], path: Path) -> None:
    """Plot parallel coordinates as in P5's Figure 2: a line per trial, an axis per option, the score as colour.

    Args:
        path: ``.png``, ``.svg`` or ``.pdf``.
    """
    with require_extra("the plot of trials", "train"):
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    low, high = min(t.score for t in trials), max(t.score for t in trials)
    reach = high - low or 1.0
    colours = matplotlib.colormaps["viridis"]
    figure = Figure(figsize=(2 + 1.6 * len(space), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    across = range(len(space) + 1)
    for t in sorted(trials, key=lambda t: t.score):
        share = (t.score - low) / reach
        heights = [*(p.scale_to_unit(t.values[p.name]) for p in space), share]
        axes.plot(across, heights, color=colours(share), linewidth=1.2, alpha=0.8)
    ends = [*(p.format_ends() for p in space), (f"{low:.4f}", f"{high:.4f}")]
    for x, (least, most) in zip(across, ends, strict=True):
        axes.axvline(x, color="black", linewidth=0.8)
        axes.text(x, -0.03, least, ha="center", va="top", fontsize=8)
        axes.text(x, 1.03, most, ha="center", va="bottom", fontsize=8)
    axes.set_xticks(list(across), [*(p.name for p in space), "F1"])
    axes.tick_params(axis="x", length=0, pad=16)
    axes.set_yticks([])
    axes.set_ylim(-0.02, 1.02)
    for side in axes.spines.values():
        side.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "allonym"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
