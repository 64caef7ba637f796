"""The pages of scores: every formula is set, its letters are explained, and it comes to what the score is."""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import fastbcubed as fb
from fastbcubed.cli.metrics_command import entry_of
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import formulas
from pages_from_code import MOVED, PAGE, example, linked, score_page

TRUTH = ({*"abcd"}, {*"efg"}, {*"hi"}, {*"jk"}, {*"l"})
PREDICTION = ({*"abe"}, {*"cdfg"}, {*"hjk"}, {*"i"}, {*"l"})
BASELINE = ({*"ab"}, {*"cde"}, {*"fg"}, {*"hijk"}, {*"l"})
ITEMS = sorted(set().union(*TRUTH))


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_formula_is_set_and_its_letters_are_explained(metric: Metric) -> None:
    _, formula, rest = formulas.read(metric.definition)
    assert ElementTree.fromstring(formulas.block(metric.definition)).tag == "math"
    text = " ".join([rest, *entry_of(metric)["notes"]])
    assert [name for name in formulas.names(formula) if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_example_is_worked(metric: Metric) -> None:
    text = "\n".join(example(metric))
    assert re.search(r"^\| --- \||so the score is", text.partition("```\n")[2], re.MULTILINE), text


def test_examples_of_changes_have_the_sets_of_each_item() -> None:
    # Of a's baseline cluster, b, c and d are split off it, of which b belongs with it: 2 of 4 are right.
    # Of b's, only a is split off, which belongs with it. Of c's and d's, a is, which does not: 1 of 4 each.
    *_, last = lines = example(METRICS["good_split_rate"])
    assert "| a | [ a b ] | [ a b c d ] | [ a ] | [ b c d ] | – | 1/2 = 0.5000 |" in lines
    assert "| b | [ a b ] | [ a b c d ] | [ b c d e ] | [ a ] | [ e ] | 0 |" in lines
    assert (
        last == "The score is the mean of the last column, 1/6 = 0.1667."
    )  # (1/2 + 0 + 1/4 + 1/4 + 0 + 0) / 6


@pytest.mark.parametrize(
    "text", ["mean of tp", "tp / ", "1 + (2", "tp ? fp", "sum over everything of n", "H(C", "2 P over R"]
)
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"formula|follows"):
        formulas.read(text)


def test_what_a_formula_looks_like() -> None:
    fraction = (
        "<mfrac><mrow><mi>tp</mi></mrow><mrow><mrow><mi>tp</mi><mo>+</mo><mi>fp</mi></mrow></mrow></mfrac>"
    )
    assert fraction in formulas.block("mean over items of tp / (tp + fp)")
    text = formulas.words("with P = precision and s = M / n; n items", {"precision": "precision"})
    assert text.startswith(
        "with <math><mi>P</mi></math> = [precision](precision.md) and <math><mi>s</mi><mo>=</mo>"
    )
    assert text.endswith("</math>; n items")


@pytest.mark.parametrize("name", METRICS)
def test_pages_say_when_to_use_a_score(name: str) -> None:
    """In a sentence, before the one or two that say when not, with a link to another score."""
    text, page = METRICS[name].use, score_page(METRICS[PAGE[name]])
    assert text.startswith("Use this score ") and text.endswith(".") and text.count(". ") == 0
    assert "](" in linked(text, PAGE[name])
    assert f"{linked(text, PAGE[name])}\n\n{linked(METRICS[name].caution, PAGE[name])}" in page


def test_names_of_one_score_share_a_page() -> None:
    aliases = {m.name for m in METRICS.values() if m.alias_of and m.family != "diff"}
    assert aliases == {Path(page).name for page in MOVED}
    page = score_page(METRICS["f1"])
    assert all(f"fastbcubed.metrics.{name}\n" in page for name in ("f1", "bcubed_f1", "extended_bcubed_f1"))


#: What the words after a formula tell of no arithmetic that this file knows: mates, and entropies of covers.
WORDS_ALONE = {
    m.name for m in METRICS.values() if (m.family == "overlap" and m.covers_only) or m.name == "omega"
}
WORDS_ALONE |= {"onmi_lfk", "onmi_max", "onmi_mean"}


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.name not in WORDS_ALONE], ids=lambda m: m.name
)
@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_formulas_come_to_the_scores(metric: Metric) -> None:
    assert Formula(metric).value() == pytest.approx(_score(metric.name), abs=1e-12)


def _score(name: str) -> float:
    truth, prediction, baseline = (
        {item: number for number, cluster in enumerate(side) for item in cluster}
        for side in (TRUTH, PREDICTION, BASELINE)
    )
    if METRICS[name].takes_three:
        return fb.diff(baseline, prediction, truth=truth, metrics=[name]).overall[name]
    if METRICS[name].family == "diff":
        return fb.diff(baseline, prediction, metrics=[name]).overall[name]
    return fb.evaluate(truth, prediction, metrics=[name]).overall[name]


class Formula:
    """The definition of a score, worked out with sets and loops."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        _, self.formula, self.rest = formulas.read(metric.definition)
        self.true = BASELINE if metric.family == "diff" else TRUTH
        links = [(a, b) for a, b in product(ITEMS, ITEMS) if a < b]
        key, response = (
            {(a, b) for a, b in links if _of(a, side) is _of(b, side)} for side in (self.true, PREDICTION)
        )
        tp, fp, fn = len(key & response), len(response - key), len(key - response)
        tn = len(links) - tp - fp - fn
        largest = [
            {id(t) for t in self.true if len(t & p) == max(len(p & u) for u in self.true)} for p in PREDICTION
        ]
        own = max(
            sum(id(t) in able for t, able in zip(chosen, largest, strict=True))
            for chosen in permutations(self.true, len(PREDICTION))
        )
        n, k, m = len(ITEMS), len(self.true), len(PREDICTION)
        cells = sum(bool(t & p) for t, p in product(self.true, PREDICTION))
        self.letters: dict[str, Any] = {
            "n": n, "N": n, "K": k, "M": m, "R": m, "V": cells, "c": k, "m": own, "beta": 1,
            "S": sum(t in PREDICTION for t in self.true), "TP": tp, "FP": fp, "FN": fn, "TN": tn,
            "W": tp, "Wk": tp + fn, "Wr": tp + fp, "B": tn, "Bk": tn + fp, "Br": tn + fn,
        }  # fmt: skip

    def value(self) -> float:
        for found in formulas.STANDS_FOR.finditer(self.rest):
            name, value = found["name"], found["value"]
            if value in METRICS:
                self.letters[name] = _score(value)
            elif not re.search(r" (if|where) |^[A-Z] = 1|^0$|^1$|X", value) and name not in (
                "k",
                "n",
                "E",
                "fp",
                "P",
            ):
                self.letters[name] = self.of(formulas.Reader(value).sum(), self.letters)
        return float(self.of(self.formula, self.letters))

    def of(self, node: Any, at: dict[str, Any]) -> Any:
        kind, *parts = node
        if kind == "number":
            return Fraction(parts[0])
        if kind == "name":
            return at[parts[0]]
        if kind == "sum":
            return sum((-1 if sign == "-" else 1) * self.of(term, at) for sign, term in parts[0])
        if kind == "product":
            return math.prod(self.of(part, at) for part in parts[0])
        if kind == "power":
            return self.of(parts[0], at) ** self.of(parts[1], at)
        if kind == "fraction":
            above, below = (self.of(part, at) for part in parts)
            return above / below if below else 1
        if kind == "cases":
            return int(eval(parts[0], {}, at))
        if kind == "over":
            found = [self.of(parts[2], {**at, **more}) for more in self.each(parts[1], at)]
            return max(found) if parts[0] == "max" else sum(found) / (len(found) if parts[0] == "mean" else 1)
        if kind == "of":
            return self.of_sets(*parts, at)
        name, arguments = parts
        if name == "E" and arguments == [("name", "I")]:
            return at["E[I]"]
        if name == "E":  # over b draws from n items, a of them marked
            n, a, b = at["n"], at["a"], at["b"]
            ways = {
                k: math.comb(a, k) * math.comb(n - a, b - k)
                for k in range(1, min(a, b) + 1)
                if b - k <= n - a
            }
            return sum(w * self.of(arguments[0], {**at, "k": k}) for k, w in ways.items()) / math.comb(n, b)
        values = [self.of(argument, at) for argument in arguments]
        if name == "binomial":
            return math.comb(*map(int, values))
        return {"sqrt": math.sqrt, "log2": math.log2, "max": max, "min": min}[name](*values)

    def of_sets(self, name: str, text: str, at: dict[str, Any]) -> float:
        if name == "H":
            return _entropy(text, self.true)
        sets = {each: at[each] for each in re.findall(r"\b[A-Z]\b", text)}
        if name == "d":
            one, other = sets.values()
            return 1 - len(one & other) / len(one | other)
        return Fraction(len(eval(text.replace("and", "&").replace("or", "|"), {}, sets)))

    def each(self, what: str, at: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the letters of each of these things."""
        if what in ("items", "its items"):
            return [self.item(item) for item in ITEMS if what == "items" or item in at["cluster"]]
        if match := re.fullmatch(r"(true|predicted) clusters.*|entities of the (key|response)", what):
            true = "true" in match[0] or "key" in match[0]
            found = [self.cluster(c, true) for c in (self.true if true else PREDICTION)]
            if "cluster" in at:  # clusters of the other side
                return [
                    {**each, **self.cell(*sorted((at["cluster"], each["cluster"]), key=self.side))}
                    for each in found
                ]
            return found
        if what == "one-to-one pairings":
            short, long = sorted((self.true, PREDICTION), key=len)
            return [{"pairing": zip(short, order, strict=True)} for order in permutations(long, len(short))]
        pairs = at["pairing"] if what == "pairs" else product(self.true, PREDICTION)
        cells = [self.cell(*sorted(pair, key=self.side)) for pair in pairs]
        if what.startswith("pairs"):
            return cells
        cells = [cell for cell in cells if cell["w"]]
        if what == "its cells":
            return [cell for cell in cells if any(at["cluster"] is side for side in cell["sides"])]
        condition = what.partition(" with ")[2].replace("=", "==")
        return [cell for cell in cells if not condition or eval(condition, {}, cell)]

    def side(self, cluster: set[str]) -> bool:
        """Return whether a cluster is a predicted one."""
        return any(cluster is each for each in PREDICTION)

    def cluster(self, cluster: set[str], true: bool) -> dict[str, Any]:
        size = len(cluster)
        return {"cluster": cluster, **({"a": size, "k": size} if true else {"b": size, "r": size})}

    def cell(self, true: set[str], pred: set[str]) -> dict[str, Any]:
        both = len(true & pred)
        sizes = {"a": len(true), "k": len(true), "b": len(pred), "r": len(pred)}
        return {
            "sides": (true, pred),
            "w": both,
            **sizes,
            **({} if self.metric.family in ("edit", "entropy") else {"n": both}),
        }

    def item(self, item: str) -> dict[str, Any]:
        true, pred = _of(item, self.true), _of(item, PREDICTION)
        tp, fp, fn = len(true & pred) - self.metric.leave_one_out, len(pred - true), len(true - pred)
        found = {"tp": tp, "fp": fp, "fn": fn, "tn": len(ITEMS) - len(true | pred)}
        found |= {"stable": tp, "merged": fp, "split": fn}
        if self.metric.takes_three:
            found |= {"B": true, "E": pred, "I": _of(item, TRUTH), "S": true - pred, "M": pred - true}
        return found


def _of(item: str, side: tuple[set[str], ...]) -> set[str]:
    return next(cluster for cluster in side if item in cluster)


def _entropy(text: str, truth: tuple[set[str], ...]) -> float:
    """Return H(C), H(K), H(C|K) or H(K|C), in bits."""
    of, _, given = text.partition("|")
    sides = {"C": truth, "K": PREDICTION}
    return sum(
        math.log2(
            len(_of(item, sides[given]) if given else ITEMS)
            / len(_of(item, sides[of]) & (_of(item, sides[given]) if given else {*ITEMS}))
        )
        for item in ITEMS
    ) / len(ITEMS)
