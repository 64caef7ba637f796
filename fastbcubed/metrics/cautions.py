"""Advice on when not to use which score: a sentence or two for each score of the registry."""

from __future__ import annotations

#: Names of scores, and the caution that they share.
_TEXT = """
precision
    Alone, it rewards caution: a prediction of singletons has precision 1. Read it with recall.
recall
    Alone, it rewards boldness: one cluster of all items has recall 1. Read it with precision.
f1
    It hides which of the two errors dominates, and an item earns credit for being with itself: if most items are
    singletons, look at elm_f1 as well.
mean_f1
    It is never larger than f1, the F of the two means, which most papers print: say which of the two you report.
fbeta
    Choose beta before you see the scores, according to the cost of a wrong merge relative to a missed one.
mean_fbeta
    Choose beta before you see the scores; this is not the F of the two means, which is fbeta.
jaccard_index
    It weights a foreign item like a missing one; if these have different costs, use precision and recall.
jaccard_distance
    It weights a foreign item like a missing one; if these have different costs, use over_merge_rate and
    under_merge_rate.
over_merge_rate
    Alone, it rewards caution: it is 0 if nothing is merged. Read it with under_merge_rate.
under_merge_rate
    Alone, it rewards boldness: it is 0 if everything is merged. Read it with over_merge_rate.
accuracy
    With many clusters, nearly all items are correctly separated, so it is close to 1 for almost any prediction.
balanced_accuracy
    With many clusters, the half of it that counts true negatives is close to 1 for almost any prediction.
specificity
    With many clusters it is close to 1 for almost any prediction without a giant cluster.
npv
    With many clusters it is close to 1 for almost any prediction.
informedness
    With many clusters, the specificity in it is close to 1, so that it approaches recall.
markedness
    With many clusters, the negative predictive value in it is close to 1, so that it approaches precision.
mcc
    With many clusters, it approaches pointwise_fowlkes_mallows, which is simpler.
pointwise_ari
    With many clusters, it approaches mean_f1, which is simpler; and it is not adjusted_rand, which is a pair score.
pointwise_fowlkes_mallows
    It is not pair_fowlkes_mallows, which counts pairs; and it hides which of the two errors dominates.
element_centric
    It considers only the larger of an item's two clusters, so it hides which of the two errors dominates.
symmetric_difference
    It is in the unit of the weights and grows with the clusters: do not compare it between data sets.
bcubed_precision_by_true_cluster bcubed_recall_by_true_cluster bcubed_f1_by_true_cluster
    It is not the BCubed of Amigó et al.: each true cluster counts once, so the many small ones dominate it.
bcubed_precision_by_pred_cluster
    Each predicted cluster counts once, so splitting off many small ones raises it.
bcubed_recall_by_pred_cluster bcubed_f1_by_pred_cluster
    Each predicted cluster counts once, so two runs are averaged over different clusters.
adapted_bcubed_precision
    Do not compare it with BCubed precision: the shares are squared, so it is never larger.
adapted_bcubed_recall
    Do not compare it with BCubed recall: the shares are squared, so it is never larger.
adapted_bcubed_f1
    Do not compare it with BCubed F1: the shares are squared, so it is never larger.
chance_bcubed_precision
    It depends on the prediction only through its number of clusters; it is the baseline for precision.
chance_bcubed_recall
    It depends on the prediction only through the sizes of its clusters; it is the baseline for recall.
adjusted_bcubed_precision adjusted_bcubed_recall
    The adjustment makes little difference if clusters are small; and it does not say how many items are wrong.
elm_precision
    A predicted singleton scores 1 whatever its true cluster: read it with elm_recall.
elm_recall
    A true singleton scores 1 whatever its predicted cluster: read it with elm_precision.
elm_f1
    It is far below f1 if clusters are small: do not compare it with BCubed scores reported by others.
elm_mean_f1
    It is never larger than elm_f1, and far below f1 if clusters are small: say which you report.
pair_tp
    It grows with the squares of cluster sizes: a few large clusters dominate it.
pair_fp
    It grows with the squares of cluster sizes: one large wrong merge outweighs thousands of small ones.
pair_fn
    It grows with the squares of cluster sizes: one large cluster that is split outweighs thousands of small ones.
pair_tn
    With many clusters it is nearly all pairs, whatever the prediction.
pair_precision
    One large wrong merge dominates it, and singletons, which are in no pair, do not count.
pair_recall
    A few large true clusters dominate it, and it ignores singletons.
pair_f1
    A few large clusters dominate it, and it ignores singletons; it violates two of the four constraints of Amigó et
    al.
rand
    With many clusters, nearly all pairs are correctly separated, so it is close to 1 for almost any prediction.
adjusted_rand
    A few large clusters dominate it, and with many clusters it approaches pair_f1.
pair_jaccard pair_fowlkes_mallows
    A few large clusters dominate it, and it ignores singletons.
mirkin
    It counts pairs, in numbers that cannot be compared between data sets.
purity
    Alone, it rewards caution: singletons have purity 1. It considers only the largest part of each predicted cluster.
inverse_purity
    Alone, it rewards boldness: one cluster of all items has inverse purity 1. It considers only the largest part of
    each true cluster.
purity_f1
    It considers only the largest part of each cluster: how the rest is scattered makes no difference.
class_f1
    It considers only the best counterpart of each true cluster: other predicted clusters make no difference.
cluster_precision
    A cluster of a thousand items with one error counts as completely wrong.
cluster_recall
    A cluster of a thousand items with one error counts as completely lost.
cluster_f1
    A cluster of a thousand items with one error counts as completely wrong, and the many small clusters dominate it.
closest_cluster_precision closest_cluster_recall closest_cluster_f1
    Each cluster counts once, so the many small ones dominate it; and it considers only the closest counterpart.
talburt_wang
    It only counts cells: a cell of one item has the same weight as a cell of a thousand.
k_measure
    It is never smaller than f1: do not compare it with the F1 of others.
split_join
    It is in the unit of the weights: do not compare it between data sets of different sizes.
matching_accuracy
    A true cluster that is split gets credit for one part only, and the search can take long on large components.
cluster_entropy
    Alone, it rewards caution: it is 0 for singletons.
class_entropy
    Alone, it rewards boldness: it is 0 for one cluster of all items.
mutual_info
    It is largest for singletons: splitting clusters never lowers it.
expected_mutual_info
    It depends on the prediction only through the sizes of its clusters.
variation_of_information
    It has no fixed upper bound (it can reach the logarithm of the number of items): do not compare it between data
    sets.
homogeneity
    Alone, it rewards caution: singletons are homogeneous.
completeness
    Alone, it rewards boldness: one cluster of all items is complete.
v_measure nmi
    With many small clusters, it is high even for uninformed predictions: singletons often score above 0.8.
ami
    If most true clusters are singletons, chance already explains most of the information, and a few items change it a
    lot.
dom_q0
    It is in bits and has no fixed upper bound: do not compare it between data sets.
dom_q2
    It is not linear in the number of errors, and few readers are familiar with it.
pantel_lin_distance
    It counts steps, of which a large data set has more: do not compare it between data sets.
pantel_lin
    It can be negative: a prediction may be further from the truth than singletons are.
basic_merge_distance
    Moving one item costs as much as merging two clusters of a thousand; and it grows with the data.
muc_precision
    It counts links, not items, and ignores singletons: merging large entities costs only one link.
muc_recall
    It counts links, not items, and ignores singletons: one cluster of all mentions has recall 1.
muc_f1
    It favours large clusters: one cluster of all mentions often scores higher than careful predictions; it ignores
    singletons.
ceaf_m_precision ceaf_m_recall ceaf_m_f1
    It pairs entities one to one: of the parts of an entity that is split, only one earns credit.
ceaf_e_precision
    Each entity counts once whatever its size, and those without a partner lower it even if they are pure.
ceaf_e_recall
    Each entity counts once whatever its size, so the many small ones dominate it.
ceaf_e_f1
    Each entity counts once whatever its size; it can prefer a mixed cluster to its pure parts.
blanc_precision blanc_recall blanc_f1
    Half of it is based on links between entities, nearly all of which are right if there are many clusters.
lea_precision lea_recall lea_f1
    An entity of one mention earns credit only if it is a singleton on both sides, so wrong singletons count more than
    in BCubed.
coref_bcubed_precision coref_bcubed_recall coref_bcubed_f1
    It differs from BCubed in the mentions that only one side has, which score 0 on their own side; without such
    mentions, use BCubed.
conll_f1
    It averages three scores that disagree on the cost of an error: use it only to compare with papers on coreference.
cice_bcubed_precision cice_bcubed_recall cice_bcubed_f1 cice_bcubed_mean_f1
    It has two interpretations that differ (see match): say which you report.
omega
    If clusters are many and small, pairs that share no cluster on either side dominate it.
onmi_lfk
    Each cluster counts once, and it can be high for unrelated clusterings: onmi_max was designed to correct this.
onmi_max onmi_mean
    It considers only the best counterpart of each cluster.
split_rate merge_rate split_jaccard_distance merge_jaccard_distance affected_rate
    It says how much changed, not whether the change is right; judging that needs a truth.
good_split_rate bad_split_rate good_merge_rate bad_merge_rate good_split_distance bad_split_distance
good_merge_distance bad_merge_distance good_distance bad_distance
    It is only one side of the change: read the good together with the bad.
good_index bad_index
    It describes what did not change: it does not judge the change.
delta_precision
    Alone, it favours splitting: read it with delta_recall.
delta_recall
    Alone, it favours merging: read it with delta_precision.
delta_jaccard_distance
    It weights splits like merges, and is small if few items changed, however good the change is.
iq
    It is relative to the size of the change, and uncertain if little changed.
"""


def _by_name() -> dict[str, str]:
    """Return the caution of each score by its name."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in _TEXT.strip().splitlines():
        if line.startswith(" "):
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".lstrip()
            continue
        names = line.split() if not names or names[0] in found else [*names, *line.split()]
    return found


#: Cautions by name of the score; an alias without its own has that of the score it stands for.
CAUTIONS = _by_name()
