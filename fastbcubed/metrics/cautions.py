"""When not to use which score: a sentence or two for each score of the registry."""

from __future__ import annotations

#: Names of scores, and below them what these have in common.
_TEXT = """
precision
    Alone, it rewards caution: a prediction of singletons has precision 1. Read it with recall.
recall
    Alone, it rewards boldness: one cluster of all items has recall 1. Read it with precision.
f1
    It hides which of the two errors dominates, and an item earns credit for being with itself: where most items are
    alone, look at elm_f1 as well.
mean_f1
    It is never larger than f1, the F of the two means, which most papers print: say which of the two you report.
fbeta
    Choose beta before you see the scores, by what a wrong merge costs against a missed one.
mean_fbeta
    Choose beta before you see the scores; and it is not the F of the two means, which is fbeta.
jaccard_index
    It weighs a foreign item like a missing one; where these cost differently, use precision and recall.
jaccard_distance
    It weighs a foreign item like a missing one; where these cost differently, use over_merge_rate and
    under_merge_rate.
over_merge_rate
    Alone, it rewards caution: it is 0 where nothing is merged. Read it with under_merge_rate.
under_merge_rate
    Alone, it rewards boldness: it is 0 where everything is merged. Read it with over_merge_rate.
accuracy
    With many clusters, nearly all items are rightly apart, so it is close to 1 for almost any prediction.
balanced_accuracy
    With many clusters, the half of it that counts true negatives is close to 1 for almost any prediction.
specificity
    With many clusters it is close to 1 for almost any prediction without a giant cluster.
npv
    With many clusters it is close to 1 for almost any prediction.
informedness
    With many clusters the specificity in it is close to 1, so that it comes to recall.
markedness
    With many clusters the negative predictive value in it is close to 1, so that it comes to precision.
mcc
    With many clusters it comes to pointwise_fowlkes_mallows, which is simpler.
pointwise_ari
    With many clusters it comes to mean_f1, which is simpler; and it is not adjusted_rand, which is a score of
    pairs.
pointwise_fowlkes_mallows
    It is not pair_fowlkes_mallows, which counts pairs; and it hides which of the two errors dominates.
element_centric
    It sees only the larger of an item's two clusters, so it hides which of the two errors dominates.
symmetric_difference
    It is in the unit of the weights and grows with the clusters: do not compare it between data sets.
bcubed_precision_by_true_cluster bcubed_recall_by_true_cluster bcubed_f1_by_true_cluster
    It is not BCubed of Amigó et al.: each true cluster counts once, so the many small ones decide it.
bcubed_precision_by_pred_cluster
    Each predicted cluster counts once, so cutting off many small ones raises it.
bcubed_recall_by_pred_cluster bcubed_f1_by_pred_cluster
    Each predicted cluster counts once, so two runs are averaged over different clusters.
adapted_bcubed_precision
    Do not compare it with BCubed precision: the shares are squared, so it is never larger.
adapted_bcubed_recall
    Do not compare it with BCubed recall: the shares are squared, so it is never larger.
adapted_bcubed_f1
    Do not compare it with BCubed F1: the shares are squared, so it is never larger.
chance_bcubed_precision
    It says nothing of the prediction but its number of clusters; it is what precision is to be compared with.
chance_bcubed_recall
    It says nothing of the prediction but the sizes of its clusters; it is what recall is to be compared with.
adjusted_bcubed_precision adjusted_bcubed_recall
    Adjusting moves little where clusters are small; and it does not say how many items are wrong.
elm_precision
    An item that is alone in its predicted cluster scores 1 whatever its true one: read it with elm_recall.
elm_recall
    An item that is alone in its true cluster scores 1 whatever its predicted one: read it with elm_precision.
elm_f1
    It is far below f1 where clusters are small: do not set it beside the BCubed figures of others.
elm_mean_f1
    It is never larger than elm_f1, and far below f1 where clusters are small: say which you report.
pair_tp
    It grows with the squares of the clusters' sizes: a few large clusters decide it.
pair_fp
    It grows with the squares of the clusters' sizes: one large wrong merge outweighs thousands of small ones.
pair_fn
    It grows with the squares of the clusters' sizes: one large cluster cut outweighs thousands of small ones.
pair_tn
    With many clusters it is nearly all pairs, whatever the prediction.
pair_precision
    One large wrong merge decides it, and it does not see singletons: both count as in no pair.
pair_recall
    A few large true clusters decide it, and it does not see singletons.
pair_f1
    A few large clusters decide it, and it does not see singletons; it violates two of the four constraints of Amigó
    et al.
rand
    With many clusters nearly all pairs are rightly apart, so it is close to 1 for almost any prediction.
adjusted_rand
    A few large clusters decide it, and with many clusters it comes to pair_f1.
pair_jaccard pair_fowlkes_mallows
    A few large clusters decide it, and it does not see singletons.
mirkin
    It counts pairs of all sizes alike, in numbers that cannot be compared between data sets.
purity
    Alone, it rewards caution: singletons have purity 1. It sees only the largest part of each predicted cluster.
inverse_purity
    Alone, it rewards boldness: one cluster of all items has inverse purity 1. It sees only the largest part of each
    true cluster.
purity_f1
    It sees only the largest part of each cluster: how the rest is scattered makes no difference.
class_f1
    It sees only the best counterpart of each true cluster: predicted clusters that are nobody's best make no
    difference.
cluster_precision
    A cluster of a thousand items with one error counts as wholly wrong.
cluster_recall
    A cluster of a thousand items with one error counts as wholly lost.
cluster_f1
    A cluster of a thousand items with one error counts as wholly wrong, and the many small clusters decide it.
closest_cluster_precision closest_cluster_recall closest_cluster_f1
    Each cluster counts once, so the many small ones decide it; and it sees only the closest counterpart.
talburt_wang
    It counts cells only: a cell of one item weighs like one of a thousand.
k_measure
    It is never smaller than f1: do not set it beside the F1 of others.
split_join
    It is in the unit of the weights: do not compare it between data sets of different size.
matching_accuracy
    A true cluster that is cut keeps credit for one part only, and it can take long on large components.
cluster_entropy
    Alone, it rewards caution: it is 0 for singletons.
class_entropy
    Alone, it rewards boldness: it is 0 for one cluster of all items.
mutual_info
    It is largest for singletons: cutting clusters never lowers it.
expected_mutual_info
    It says nothing of the prediction but the sizes of its clusters.
variation_of_information
    It has no fixed upper bound (it can reach the logarithm of the number of items): do not compare it between data
    sets.
homogeneity
    Alone, it rewards caution: singletons are homogeneous.
completeness
    Alone, it rewards boldness: one cluster of all items is complete.
v_measure nmi
    With many small clusters it is high for predictions that know nothing: singletons often score above 0.8.
ami
    Where most true clusters are singletons, chance already explains most of the information, and it varies much
    with few items.
dom_q0
    It is in bits and has no fixed upper bound: do not compare it between data sets.
dom_q2
    It is not linear in the number of errors, and few readers know it.
pantel_lin_distance
    It counts steps, of which a large data set has more: do not compare it between data sets.
pantel_lin
    It can be negative: a prediction may be farther from the truth than singletons are.
basic_merge_distance
    Moving one item costs as much as merging two clusters of a thousand; and it grows with the data.
muc_precision
    It counts links, not items, and does not see singletons: merging large entities costs one link.
muc_recall
    It counts links, not items, and does not see singletons: one cluster of all mentions has recall 1.
muc_f1
    It favours large clusters: one cluster of all mentions often scores above careful predictions; it does not see
    singletons.
ceaf_m_precision ceaf_m_recall ceaf_m_f1
    It pairs entities one to one: the parts of an entity that is cut earn nothing but for one.
ceaf_e_precision
    Each entity counts once whatever its size, and those without a partner lower it although they are pure.
ceaf_e_recall
    Each entity counts once whatever its size, so the many small ones decide it.
ceaf_e_f1
    Each entity counts once whatever its size; it can prefer a mixed cluster to its pure parts.
blanc_precision blanc_recall blanc_f1
    Half of it is of links between entities, nearly all of which are right with many clusters.
lea_precision lea_recall lea_f1
    An entity of one mention earns credit only if it is alone on both sides, so that wrong singletons weigh more
    than in BCubed.
coref_bcubed_precision coref_bcubed_recall coref_bcubed_f1
    It differs from BCubed by the mentions that only one side has, which score 0 on their own side; without such
    mentions, use that.
conll_f1
    It averages three scores that disagree on what an error costs: use it to compare with papers on coreference.
cice_bcubed_precision cice_bcubed_recall cice_bcubed_f1 cice_bcubed_mean_f1
    It has two readings that differ (see match): say which you report.
omega
    Pairs that share nothing on either side decide it where clusters are many and small.
onmi_lfk
    Each cluster counts once, and it can be high for unrelated clusterings: onmi_max was made to mend that.
onmi_max onmi_mean
    It sees only the best counterpart of each cluster.
split_rate merge_rate split_jaccard_distance merge_jaccard_distance affected_rate
    It says how much changed, not whether that is right: that takes a truth.
good_split_rate bad_split_rate good_merge_rate bad_merge_rate good_split_distance bad_split_distance
good_merge_distance bad_merge_distance good_distance bad_distance
    It is one side of the change: read the good with the bad.
good_index bad_index
    It is about what did not change: it does not judge the change.
delta_precision
    Alone, it favours splitting: read it with delta_recall.
delta_recall
    Alone, it favours merging: read it with delta_precision.
delta_jaccard_distance
    It weighs splits like merges, and is small where few items changed, however well.
iq
    It is a ratio to the size of the change, and uncertain where little changed.
"""


def _by_name() -> dict[str, str]:
    """Return the caution of each name."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in _TEXT.strip().splitlines():
        if line.startswith(" "):
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".lstrip()
            continue
        names = line.split() if not names or names[0] in found else [*names, *line.split()]
    return found


#: By name of the score; an alias without one has that of the score that it stands for.
CAUTIONS = _by_name()
