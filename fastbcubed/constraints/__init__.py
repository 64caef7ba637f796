"""Formal constraints on scores of clusterings: instances of the constraints, and a checker for any score.

`check_constraints` checks a score, given by name or as a function, against every constraint; `table` checks many
scores. Each function named after a constraint makes an instance of the constraint: a truth and two predictions, the
second of which is better according to the constraint. `all_singletons`, `all_in_one`, `blocks` and `cheat` make
trivial predictions that ignore the truth.
"""

from fastbcubed.constraints.checker import (
    CHECKS,
    PERFECT_WITHOUT_MATCH,
    Case,
    ConstraintReport,
    ConstraintTable,
    Finding,
    all_in_one,
    all_singletons,
    blocks,
    cheat,
    check_constraints,
    table,
)
from fastbcubed.constraints.formal_constraints import (
    AMIGO_TEST_CASES,
    Instance,
    completeness,
    homogeneity,
    perfect_match,
    rag_bag,
    size_versus_quantity,
    unbalanced,
)
from fastbcubed.runtime.object_attributes import only_all

__all__ = [
    "AMIGO_TEST_CASES",
    "CHECKS",
    "PERFECT_WITHOUT_MATCH",
    "Case",
    "ConstraintReport",
    "ConstraintTable",
    "Finding",
    "Instance",
    "all_in_one",
    "all_singletons",
    "blocks",
    "cheat",
    "check_constraints",
    "completeness",
    "homogeneity",
    "perfect_match",
    "rag_bag",
    "size_versus_quantity",
    "table",
    "unbalanced",
]
__dir__ = only_all(globals())
