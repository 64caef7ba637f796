"""Scores as plain functions of two labelings, with the conventions of scikit-learn.

The documentation and example of each score are declared next to its formula, in the file of its family.
"""

import math

from fastbcubed.metrics import functions as make
from fastbcubed.metrics.functions import (
    PUBLIC,
    CoreferenceScore,
    Score,
    ScoreInBase,
    ScoreOfAverage,
    ScoreOfBeta,
    ScoreOfCovers,
    ScoreOfCoversAndBeta,
    ScoreOfDiff,
    ScoreOfThree,
)
from fastbcubed.metrics.functions import HomogeneityCompletenessVMeasure as HomogeneityCompletenessVMeasure
from fastbcubed.metrics.functions import PrecisionRecallFbeta as PrecisionRecallFbeta
from fastbcubed.metrics.functions import PrecisionRecallFscore as PrecisionRecallFscore
from fastbcubed.metrics.functions import combined_entropy as combined_entropy
from fastbcubed.metrics.functions import (
    homogeneity_completeness_v_measure as homogeneity_completeness_v_measure,
)
from fastbcubed.metrics.unregistered import ExactMatch as ExactMatch
from fastbcubed.metrics.unregistered import exact_match as exact_match
from fastbcubed.metrics.unregistered import merge_distance as merge_distance
from fastbcubed.metrics.unregistered import pair_confusion_matrix as pair_confusion_matrix
from fastbcubed.metrics.unregistered import pointwise_score as pointwise_score
from fastbcubed.runtime.object_attributes import only_all

# Pointwise

precision: Score = make.score("precision")
recall: Score = make.score("recall")
f1: Score = make.score("f1")
precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores("f1")
mean_f1: Score = make.score("mean_f1")
fbeta: ScoreOfBeta[float] = make.score_of_beta("fbeta")
mean_fbeta: ScoreOfBeta[float] = make.score_of_beta("mean_fbeta")
jaccard_index: Score = make.score("jaccard_index")
jaccard_distance: Score = make.score("jaccard_distance")
over_merge_rate: Score = make.score("over_merge_rate")
under_merge_rate: Score = make.score("under_merge_rate")
accuracy: Score = make.score("accuracy")
balanced_accuracy: Score = make.score("balanced_accuracy")
specificity: Score = make.score("specificity")
npv: Score = make.score("npv")
informedness: Score = make.score("informedness")
markedness: Score = make.score("markedness")
mcc: Score = make.score("mcc")
pointwise_ari: Score = make.score("pointwise_ari")
pointwise_fowlkes_mallows: Score = make.score("pointwise_fowlkes_mallows")
element_centric: Score = make.score("element_centric")
symmetric_difference: Score = make.score("symmetric_difference")

# BCubed

bcubed_precision: Score = make.score("bcubed_precision")
bcubed_recall: Score = make.score("bcubed_recall")
bcubed_f1: Score = make.score("bcubed_f1")
bcubed_precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores("bcubed_f1")
bcubed_mean_f1: Score = make.score("bcubed_mean_f1")
bcubed_precision_by_true_cluster: Score = make.score("bcubed_precision_by_true_cluster")
bcubed_recall_by_true_cluster: Score = make.score("bcubed_recall_by_true_cluster")
bcubed_f1_by_true_cluster: Score = make.score("bcubed_f1_by_true_cluster")
bcubed_precision_by_pred_cluster: Score = make.score("bcubed_precision_by_pred_cluster")
bcubed_recall_by_pred_cluster: Score = make.score("bcubed_recall_by_pred_cluster")
bcubed_f1_by_pred_cluster: Score = make.score("bcubed_f1_by_pred_cluster")
adapted_bcubed_precision: Score = make.score("adapted_bcubed_precision")
adapted_bcubed_recall: Score = make.score("adapted_bcubed_recall")
adapted_bcubed_f1: Score = make.score("adapted_bcubed_f1")
adapted_bcubed_precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores(
    "adapted_bcubed_f1"
)
chance_bcubed_precision: Score = make.score("chance_bcubed_precision")
chance_bcubed_recall: Score = make.score("chance_bcubed_recall")
adjusted_bcubed_precision: Score = make.score("adjusted_bcubed_precision")
adjusted_bcubed_recall: Score = make.score("adjusted_bcubed_recall")

# ELM (Elements Like Me), where an item is left out of its own clusters

elm_precision: Score = make.score("elm_precision")
elm_recall: Score = make.score("elm_recall")
elm_f1: Score = make.score("elm_f1")
elm_precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores("elm_f1")
elm_mean_f1: Score = make.score("elm_mean_f1")

# Pairs of items

pair_tp: Score = make.score("pair_tp")
pair_fp: Score = make.score("pair_fp")
pair_fn: Score = make.score("pair_fn")
pair_tn: Score = make.score("pair_tn")
pair_precision: Score = make.score("pair_precision")
pair_recall: Score = make.score("pair_recall")
pair_f1: Score = make.score("pair_f1")
pair_precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores("pair_f1")
rand: Score = make.score("rand")
rand_score: Score = make.score("rand", "rand_score")
adjusted_rand: Score = make.score("adjusted_rand")
adjusted_rand_score: Score = make.score("adjusted_rand", "adjusted_rand_score")
pair_jaccard: Score = make.score("pair_jaccard")
pair_fowlkes_mallows: Score = make.score("pair_fowlkes_mallows")
fowlkes_mallows_score: Score = make.score("pair_fowlkes_mallows", "fowlkes_mallows_score")
mirkin: Score = make.score("mirkin")

# Clusters and their best counterparts

purity: Score = make.score("purity")
inverse_purity: Score = make.score("inverse_purity")
purity_f1: Score = make.score("purity_f1")
class_f1: Score = make.score("class_f1")
cluster_precision: Score = make.score("cluster_precision")
cluster_recall: Score = make.score("cluster_recall")
cluster_f1: Score = make.score("cluster_f1")
cluster_precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores("cluster_f1")
closest_cluster_precision: Score = make.score("closest_cluster_precision")
closest_cluster_recall: Score = make.score("closest_cluster_recall")
closest_cluster_f1: Score = make.score("closest_cluster_f1")
closest_cluster_precision_recall_fscore: ScoreOfBeta[PrecisionRecallFscore] = make.three_scores(
    "closest_cluster_f1"
)
talburt_wang: Score = make.score("talburt_wang")
k_measure: Score = make.score("k_measure")
split_join: Score = make.score("split_join")
matching_accuracy: Score = make.score("matching_accuracy")

# Information

cluster_entropy: ScoreInBase = make.score_in_base("cluster_entropy")
class_entropy: ScoreInBase = make.score_in_base("class_entropy")
mutual_info: ScoreInBase = make.score_in_base("mutual_info")
mutual_info_score: ScoreInBase = make.score_in_base("mutual_info", "mutual_info_score", base=math.e)
expected_mutual_info: ScoreInBase = make.score_in_base("expected_mutual_info")
variation_of_information: ScoreInBase = make.score_in_base("variation_of_information")
homogeneity: Score = make.score("homogeneity")
homogeneity_score: Score = make.score("homogeneity", "homogeneity_score")
completeness: Score = make.score("completeness")
completeness_score: Score = make.score("completeness", "completeness_score")
v_measure: ScoreOfBeta[float] = make.v_measure_of_beta()
v_measure_score: ScoreOfBeta[float] = make.v_measure_of_beta("v_measure_score")
nmi: ScoreOfAverage = make.score_of_average("nmi")
normalized_mutual_info_score: ScoreOfAverage = make.score_of_average("nmi", "normalized_mutual_info_score")
ami: ScoreOfAverage = make.score_of_average("ami")
adjusted_mutual_info_score: ScoreOfAverage = make.score_of_average("ami", "adjusted_mutual_info_score")
dom_q0: ScoreInBase = make.score_in_base("dom_q0")
dom_q2: Score = make.score("dom_q2")

# Edit distances

pantel_lin_distance: Score = make.score("pantel_lin_distance")
pantel_lin: Score = make.score("pantel_lin")
basic_merge_distance: Score = make.score("basic_merge_distance")

# Coreference

muc_precision: CoreferenceScore[float] = make.coreference_score("muc_precision")
muc_recall: CoreferenceScore[float] = make.coreference_score("muc_recall")
muc_f1: CoreferenceScore[float] = make.coreference_score("muc_f1")
muc_precision_recall_fscore: CoreferenceScore[PrecisionRecallFscore] = make.coreference_scores("muc")
ceaf_m_precision: CoreferenceScore[float] = make.coreference_score("ceaf_m_precision")
ceaf_m_recall: CoreferenceScore[float] = make.coreference_score("ceaf_m_recall")
ceaf_m_f1: CoreferenceScore[float] = make.coreference_score("ceaf_m_f1")
ceaf_m_precision_recall_fscore: CoreferenceScore[PrecisionRecallFscore] = make.coreference_scores("ceaf_m")
ceaf_e_precision: CoreferenceScore[float] = make.coreference_score("ceaf_e_precision")
ceaf_e_recall: CoreferenceScore[float] = make.coreference_score("ceaf_e_recall")
ceaf_e_f1: CoreferenceScore[float] = make.coreference_score("ceaf_e_f1")
ceaf_e_precision_recall_fscore: CoreferenceScore[PrecisionRecallFscore] = make.coreference_scores("ceaf_e")
blanc_precision: CoreferenceScore[float] = make.coreference_score("blanc_precision")
blanc_recall: CoreferenceScore[float] = make.coreference_score("blanc_recall")
blanc_f1: CoreferenceScore[float] = make.coreference_score("blanc_f1")
blanc_precision_recall_fscore: CoreferenceScore[PrecisionRecallFscore] = make.coreference_scores("blanc")
lea_precision: CoreferenceScore[float] = make.coreference_score("lea_precision")
lea_recall: CoreferenceScore[float] = make.coreference_score("lea_recall")
lea_f1: CoreferenceScore[float] = make.coreference_score("lea_f1")
lea_precision_recall_fscore: CoreferenceScore[PrecisionRecallFscore] = make.coreference_scores("lea")
coref_bcubed_precision: CoreferenceScore[float] = make.coreference_score("coref_bcubed_precision")
coref_bcubed_recall: CoreferenceScore[float] = make.coreference_score("coref_bcubed_recall")
coref_bcubed_f1: CoreferenceScore[float] = make.coreference_score("coref_bcubed_f1")
coref_bcubed_precision_recall_fscore: CoreferenceScore[PrecisionRecallFscore] = make.coreference_scores(
    "coref_bcubed"
)
conll_f1: CoreferenceScore[float] = make.coreference_score("conll_f1")

# Overlapping clusterings

extended_bcubed_precision: ScoreOfCovers = make.score_of_covers("extended_bcubed_precision")
extended_bcubed_recall: ScoreOfCovers = make.score_of_covers("extended_bcubed_recall")
extended_bcubed_f1: ScoreOfCovers = make.score_of_covers("extended_bcubed_f1")
extended_bcubed_precision_recall_fscore: ScoreOfCoversAndBeta[PrecisionRecallFscore] = make.three_of_covers(
    "extended_bcubed_f1"
)
extended_bcubed_mean_f1: ScoreOfCovers = make.score_of_covers("extended_bcubed_mean_f1")
extended_elm_precision: ScoreOfCovers = make.score_of_covers("extended_elm_precision")
extended_elm_recall: ScoreOfCovers = make.score_of_covers("extended_elm_recall")
extended_elm_f1: ScoreOfCovers = make.score_of_covers("extended_elm_f1")
extended_elm_precision_recall_fscore: ScoreOfCoversAndBeta[PrecisionRecallFscore] = make.three_of_covers(
    "extended_elm_f1"
)
extended_elm_mean_f1: ScoreOfCovers = make.score_of_covers("extended_elm_mean_f1")
cice_bcubed_precision: ScoreOfCovers = make.score_of_covers("cice_bcubed_precision")
cice_bcubed_recall: ScoreOfCovers = make.score_of_covers("cice_bcubed_recall")
cice_bcubed_f1: ScoreOfCovers = make.score_of_covers("cice_bcubed_f1")
cice_bcubed_precision_recall_fscore: ScoreOfCoversAndBeta[PrecisionRecallFscore] = make.three_of_covers(
    "cice_bcubed_f1"
)
cice_bcubed_mean_f1: ScoreOfCovers = make.score_of_covers("cice_bcubed_mean_f1")
omega: ScoreOfCovers = make.score_of_covers("omega")
onmi_lfk: ScoreOfCovers = make.score_of_covers("onmi_lfk")
onmi_max: ScoreOfCovers = make.score_of_covers("onmi_max")
onmi_mean: ScoreOfCovers = make.score_of_covers("onmi_mean")

# The size of a change and, given a truth, its quality

split_rate: ScoreOfDiff = make.score_of_diff("split_rate")
merge_rate: ScoreOfDiff = make.score_of_diff("merge_rate")
split_jaccard_distance: ScoreOfDiff = make.score_of_diff("split_jaccard_distance")
merge_jaccard_distance: ScoreOfDiff = make.score_of_diff("merge_jaccard_distance")
affected_rate: ScoreOfDiff = make.score_of_diff("affected_rate")
good_split_rate: ScoreOfThree = make.score_of_three("good_split_rate")
bad_split_rate: ScoreOfThree = make.score_of_three("bad_split_rate")
good_merge_rate: ScoreOfThree = make.score_of_three("good_merge_rate")
bad_merge_rate: ScoreOfThree = make.score_of_three("bad_merge_rate")
good_split_distance: ScoreOfThree = make.score_of_three("good_split_distance")
bad_split_distance: ScoreOfThree = make.score_of_three("bad_split_distance")
good_merge_distance: ScoreOfThree = make.score_of_three("good_merge_distance")
bad_merge_distance: ScoreOfThree = make.score_of_three("bad_merge_distance")
good_distance: ScoreOfThree = make.score_of_three("good_distance")
bad_distance: ScoreOfThree = make.score_of_three("bad_distance")
good_index: ScoreOfThree = make.score_of_three("good_index")
bad_index: ScoreOfThree = make.score_of_three("bad_index")
delta_precision: ScoreOfThree = make.score_of_three("delta_precision")
delta_recall: ScoreOfThree = make.score_of_three("delta_recall")
delta_jaccard_distance: ScoreOfThree = make.score_of_three("delta_jaccard_distance")
iq: ScoreOfThree = make.score_of_three("iq")

__all__ = sorted(PUBLIC)
__dir__ = only_all(globals())
