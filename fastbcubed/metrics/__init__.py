"""Scores as plain functions of two labelings, in the habits of scikit-learn.

They are written down family by family in `fastbcubed.metrics.functions`.
"""

from fastbcubed.metrics.functions.bcubed import *
from fastbcubed.metrics.functions.elm import *
from fastbcubed.metrics.functions.overlap import *
from fastbcubed.metrics.functions.pointwise import *
from fastbcubed.metrics.labelings import PrecisionRecallFscore

__all__ = [
    "ExactMatch",
    "PrecisionRecallFscore",
    "accuracy",
    "adapted_bcubed_f1",
    "adapted_bcubed_precision",
    "adapted_bcubed_precision_recall_fscore",
    "adapted_bcubed_recall",
    "adjusted_bcubed_precision",
    "adjusted_bcubed_recall",
    "balanced_accuracy",
    "bcubed_f1",
    "bcubed_f1_by_pred_cluster",
    "bcubed_f1_by_true_cluster",
    "bcubed_mean_f1",
    "bcubed_precision",
    "bcubed_precision_by_pred_cluster",
    "bcubed_precision_by_true_cluster",
    "bcubed_precision_recall_fscore",
    "bcubed_recall",
    "bcubed_recall_by_pred_cluster",
    "bcubed_recall_by_true_cluster",
    "chance_bcubed_precision",
    "chance_bcubed_recall",
    "elm_f1",
    "elm_mean_f1",
    "elm_precision",
    "elm_precision_recall_fscore",
    "elm_recall",
    "exact_match",
    "f1",
    "fbeta",
    "informedness",
    "jaccard_distance",
    "jaccard_index",
    "markedness",
    "mcc",
    "mean_f1",
    "mean_fbeta",
    "npv",
    "omega",
    "onmi_lfk",
    "onmi_max",
    "onmi_mean",
    "over_merge_rate",
    "pointwise_ari",
    "pointwise_fowlkes_mallows",
    "pointwise_score",
    "precision",
    "precision_recall_fscore",
    "recall",
    "specificity",
    "symmetric_difference",
    "under_merge_rate",
]
