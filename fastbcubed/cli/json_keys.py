"""The keys of the JSON that commands print: one table for their help, the documentation and a test."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Each line has a key, or several separated by commas, the commands that print it, and its contents: ``key [commands]
#: contents``. ``a -> b`` is an object whose keys are data, such as names of scores; ``{...}`` lists the keys of an
#: object.
TABLE = """
fastbcubed [evaluate explain compare diff cluster estimate sweep] version of the package
truth, prediction [evaluate explain] what was compared
baseline, experiment, truth [diff] what was compared
sample, prediction [estimate] what was compared; for several runs, only the sample
links, out [cluster] what was read, what was written
baseline, align, level, unit, bootstrap, seed [compare] the arguments of these names
baseline [estimate] for several runs: the run that the others are compared with
n_items [compare] items that are compared
definition [evaluate] average, overlapping, weighted, weighting, beta, unmatched {truth, prediction}, nulls,
    duplicates, noise; for CICE-BCubed also match, similarity
definition [diff] average, overlapping, weighted, weighting, unmatched {baseline, experiment}, unlabelled, nulls,
    duplicates, noise
definition [estimate] sampling, draws, population_clusters, missing, beta, level, nulls, duplicates
loss [explain] the score whose loss is explained
options [explain] depth, min_items, level, limit, seed
overall [explain] the score of all items
overall [evaluate diff] score -> number, null where it is not defined
errors [evaluate] score -> standard error by component of truth and prediction
errors [diff] with a truth: score -> standard error
intervals [evaluate diff] score -> {low, high}, its 95 % interval
degrees_of_freedom [evaluate] score -> degrees of freedom of Student's t in its interval
not_drawn [evaluate] score -> standard error due to components that were not drawn, as a share of the distance to an end
units [evaluate] {n, effective, largest_share} of the components that errors come from
units [compare] {n, effective, largest_share} of the units that errors come from; null if there are none
coverage [evaluate] n_common, n_truth_only, n_prediction_only, their weights as weight_..., n_null, n_noise,
    n_duplicates, truth_coverage, prediction_coverage, bounds {precision_lower, precision_upper, unlabelled_mates}
coverage [diff] n_common, n_gone, n_new, their weights as weight_..., n_null, n_noise, n_duplicates, baseline_coverage,
    experiment_coverage
coverage [compare] list of {run, n_common, n_truth_only, n_prediction_only, truth_coverage, prediction_coverage,
    n_scored, n_left_out, own_precision, own_recall, own_f1, precision_if_alone, recall_if_alone, f1_if_alone (with the
    truth's items missing from the run as singletons)}, on all items that the run scores
summary [evaluate] true, pred -> items, clusters, singletons, largest, size_quantiles, exact, outcomes
summary [diff] baseline, experiment -> items, clusters, singletons, largest, size_quantiles, unchanged, outcomes
summary [estimate] sample {n_clusters, n_draws, n_items, n_missing, n_singletons, largest, effective, n_null,
    n_duplicates}, true {mean_cluster_size, matching_rate, hill}, pred {n_items, n_clusters, mean_cluster_size,
    n_null, n_duplicates}
outcomes [evaluate] list of {side, outcome, n_clusters, n_items, weight, precision_loss, recall_loss}
changes [diff] list of {became, n_clusters, n_items, weight, share}; null where clusters overlap
id_stability [diff] as_named, best: shares of the common weight whose clusters kept their ids, and at most could; null
    where clusters overlap, or where it would take long and was not requested
verdict [diff] with a truth: n_items, weight, n_unlabelled, weight_unlabelled, unlabelled, levels {baseline,
    experiment} -> precision, recall, jaccard_distance
scores [compare] list of {run, n_items, weight, n_clusters, scores}
deltas [compare estimate] list of {baseline, experiment, score, baseline_value, experiment_value, delta, se, low, high,
    holds}; for estimate, only with several runs
ranking [compare estimate] list of {run, score, value, delta, se, low, high, as_good}, best first, with differences
    from the best; for estimate, only with several runs
ranks [compare estimate] list of {run, rank by score}; null if a run drops more of the truth than one that it is not
    ranked below; for estimate, only with several runs
slices [evaluate] slicing -> list of {its attributes, n_items, weight, precision_loss, recall_loss, scores}; if
    the items were in memory and there were at most a million cells, also n_units, and ..._se of scores
slices [diff] slicing -> list of {its attributes, n_items, weight, split_change, merge_change, scores}; if computed in
    memory, also n_units, and ..._se of scores; with a truth, also n_labelled
slices [compare] slicing -> list of {run, its attributes, n_items, weight, n_units, precision_loss, recall_loss,
    scores, ..._delta, ..._delta_se}; n_units and standard errors only in memory and on common items
slices [estimate] with --slice: slicing -> list of {run (of several), its attributes, n_items, n_clusters (draws),
    scores, ..._se, ..._low, ..._high, for several runs also ..._delta, ..._delta_se, ..._delta_low, ..._delta_high},
    null for fewer than ten clusters
sentences [explain] list of texts: what was found
slices [explain] list of {slice, conditions (list of {attribute, and value, or values, or low and high}), n_items,
    n_units (components), share, inside (score there), inside_low, inside_high, outside, outside_low, outside_high,
    share_of_loss, excess, held_out_inside, held_out_outside, p, p_adjusted, holds, alike}, the largest excess first
not_confirmed [explain] the same for slices that the searched half proposes and the other half does not confirm
looked_at [explain] number of slices examined in the searched half
units [explain] {searched, tested}: components of the two halves
power [explain] list of {share, difference}: the difference in score at which a slice of this share of the
    items is found 8 times in 10; null if there is none
attributes [explain] attribute -> kind, n_values, rare (list of the values that are grouped)
left_out [explain] attribute -> why it was not searched
slices [sweep] slicing -> list of {its attributes, n_items, weight, threshold, scores, ..._at_common, cost}
n_slices [evaluate diff] slicing -> number of slices, if more than 4,096: then slices has only the costliest;
    in Python, to_dict(limit=None) of an evaluation has all
n_rows [compare] slicing -> number of rows, if more than 4,096: then slices has only those that differ most
source_pairs [evaluate] with --slice-pairs: attribute -> list of {pair, source, other_source, pair_tp, pair_fp,
    pair_fn, pair_precision, pair_recall, pair_f1}
links, items [sweep] links and items that were read
thresholds [sweep] number of scores at which clusters change
ascending [sweep] whether the strongest links have the lowest scores
unmatched [sweep] {truth, prediction}, as for evaluate
coverage [sweep] n_common, n_truth_only, n_prediction_only, their weights as weight_..., n_null, n_noise,
    n_duplicates
best [sweep] score, value, low, high (of the 95 % interval, where it is known), threshold, until (the next weaker score
    at which clusters change), as_good (the weakest and the strongest threshold between which the score is at most 0.005
    worse), where, and all other keys of curve; an infinite threshold, which no link reaches, is null
chosen [sweep] with --draws: low, high, expected (score on other data), optimism, threshold_low, threshold_high,
    level, draws, seed, n_units, without (draws in which no threshold meets the conditions)
curve [sweep] list of {threshold, clusters, largest, singletons, scores}
points [sweep] the same as curve, at the thresholds given by --threshold
merges [sweep] list of {threshold, left, right, n_left, n_right, n_clusters, n_items, precision_change, recall_change,
    f1_change}: a link, the clusters it joins, and what the merge does
stages [sweep] with --stages: threshold, shown (as it is typed), n_links, n_right (within a true cluster), n_used,
    n_used_right, n_unjudged (with an item without a true cluster), recalls (recall, pair_recall -> candidates, used,
    found, lost: {blocking, threshold, merging}), one_score (whether links have one), notes as in warnings
estimates [estimate] list of {run (of several), score, estimate, se, low, high, unadjusted, n_clusters, df}
level [estimate-pairs] confidence of the intervals
estimates [estimate-pairs] list of {stratum (with --by-stratum), score, estimate, se (null where a stratum has one
    judged pair), low, high, n_judged, n_unsure, n_unjudged, low_unsure, high_unsure}; with --prediction also run (of
    several), n_components, n_outside
weight [estimate-pairs] column of weights of labelled pairs; null without it
columns [cluster] left, right (lists of names), score, verdict, tool that writes such columns
n_links, n_items [cluster] links and items that were read
n_judged_different, n_unsure [cluster] pairs kept apart by --verdict, and pairs with an unsure verdict or none
all_items_given [cluster] whether --items was given
clusterings [cluster] list of {threshold, column, n_connecting, clusters, singletons, largest, n_contradicted (pairs
    judged different that links connect)}
warnings [evaluate diff cluster estimate sweep] list of {code, level (warning, note), message, figures}
warnings [compare] list of {code, level (warning, note), message, runs, figures}
not_computed [evaluate diff estimate sweep] score of a family -> reason
own_scores [evaluate] with scores of your own: score -> {family, low, high (null if infinite), best, summary,
    definition, source, mean (whether it has the interval of a mean over items)}
opened [evaluate] with --show: list of clusters; see: fastbcubed show --help
opened [diff] with --show: the same, with baseline_cluster or experiment_cluster, split_change and merge_change
opened [compare] with --show: list of {side, cluster, n_items, runs, members}
opened [show] list of clusters and items:
opened[] of a cluster [show] side, cluster, n_items, weight, n_parts, outcome, precision_loss, recall_loss, weighted,
    overlapping, columns, parts, one_sided {n_items, policy, members}
opened[].parts[] [show] true_cluster or pred_cluster, n_items, weight, n_items_of_cluster, precision_loss,
    recall_loss, members
opened[].parts[].members[] [show] item, weight, attributes
opened[] of an item [show] item, true_cluster, pred_cluster, weight, tp, fp, fn, tn, scores, attributes, members {tp,
    fp, fn, tn} -> n_items, first
repairs [evaluate] with --repairs: list of {rank, kind, side, cluster, n_items, weight, gain, running, precision_gain,
    recall_gain, running_precision, running_recall}
reading [evaluate] truth, prediction -> how its columns were read: item, cluster; for links left, right, score,
    verdict -> columns, reason, others (other candidates); sources, tool. null without columns
reading [diff estimate sweep cluster estimate-pairs] input (several runs by run) -> how its columns were read,
    as for evaluate
manifest [evaluate] versions, engine, memory_limit, arguments that were given; truth, prediction -> rows, fingerprint
    (of all rows, whatever their order and file format)
manifest [diff] versions, engine, memory_limit, arguments that were given; baseline, experiment -> rows, fingerprint
runs [compare] run -> what evaluate --json prints of it
runs [estimate] for several runs: run -> what estimate --json prints of it
gates [evaluate] with gates: list of {gate, passed, score, slice, value, at_least | at_most}; for an end of an interval
    also low, high, level, and of (the score); for --fail-worse also baseline, worse_by, at_most_worse_by (for a size
    away_by, at_most_away_by; if significant, delta, low, high, level), n_items, baseline_n_items, and a reason
    if more of the truth is dropped than in the baseline; for --fail-on-warning also warnings
gates [diff] with gates: list of {gate, passed, score, slice, value, at_least | at_most}; for an end of an interval
    also low, high, level, of
gates [compare estimate] with gates: as for evaluate; for several runs also run
[] [metrics] name, family, range, better, summary, definition, source, reference, alias_of, notes, use, caution of a
    score
seed, n_random [constraints] the arguments of these names
checks [constraints] check -> what it demands
scores [constraints] score -> better, amigo_test_cases, checks {check -> verdict, tried, smallest (the smallest
    counterexample), by, or scores, there}
"""


class Key(NamedTuple):
    """One or several keys of JSON, the commands that print them, and what they contain."""

    names: str
    commands: tuple[str, ...]
    contents: str


def keys(command: str = "") -> list[Key]:
    """Return the keys that a command prints, or all keys, in the order of the table."""
    found = []
    for line in TABLE.replace("\n    ", " ").strip().splitlines():
        names, commands, contents = re.fullmatch(r"(.+?) \[([a-z -]+)\] (.+)", line).groups()  # type: ignore[union-attr]
        if not command or command in commands.split():
            found.append(Key(names, tuple(commands.split()), contents))
    return found


def help_text(command: str) -> str:
    """Return the section on JSON in a command's help; "" for a command without JSON."""
    described = keys(command)
    width = min(20, max((len(each.names) for each in described), default=0))
    lines = [f"  {names:{width}}  {contents}" for names, _, contents in described]
    return "\n".join(["JSON (--json). Later versions may add keys; these stay.", *lines, ""]) if lines else ""
