"""What the help of a command says below its flags."""

__all__ = ["EXIT_CODES", "NOTES", "SHAPES", "SHOWN", "WARM_UP"]

NOTES = """\
Names of columns
  a,b             the truth's and the prediction's          --item id,rec_id
  a+b             several columns that are one id           --item source+number
  both            each side may have several                --item source+number,src+no
  A comma or plus in a name is written \\, or \\+.
  If a table has no column of the default name, and one column only is left, that one is taken. The columns that
  Splink, Zingg, dedupe and Senzing write are known, and a note says that they were recognised.

Tables elsewhere
  s3://bucket/run7/*.parquet, and likewise gs://, abfs://, hdfs:// and file:///, are read by pyarrow, with options
  such as s3://bucket/truth.parquet?region=eu-west-1; other schemes by fsspec, if it is installed.

  - is standard input, and pipes are read like files: Parquet, Arrow IPC, CSV or JSON lines, compressed or not.
  The fields of CSV may be apart by commas, tabs, semicolons or bars, whichever fits; the first line has the names.

Examples
  fastbcubed evaluate truth.parquet pred.parquet --weight w --slice country --slice country,year
  fastbcubed evaluate true_label pred_label --table items.parquet --metric all
  fastbcubed evaluate truth.parquet 'run7/*.parquet' --json | jq .overall.f1
  duckdb -csv crm.db 'select id as item, entity as cluster from matches' | fastbcubed evaluate truth.csv -
  fastbcubed evaluate truth.csv pred.csv --fail-under f1=0.9 --fail-under precision=0.95

JSON (--json): one object. Later versions may add keys; these stay.
  fastbcubed      version                    truth, prediction   what was compared
  definition      average, overlapping, weighted, weighting, beta,
                  unmatched {truth, prediction}, nulls, duplicates, noise; of CICE-BCubed match, similarity
  overall         score -> number, null where it is not defined
  coverage        n_common, n_truth_only, n_prediction_only, the same as weight_..., n_null, n_noise,
                  n_duplicates, truth_coverage, prediction_coverage,
                  bounds {precision_lower, precision_upper, unlabelled_mates}
  summary         true, pred -> items, clusters, singletons, largest, size_quantiles, exact, outcomes
  outcomes        list of {side, outcome, n_clusters, n_items, weight, precision_loss, recall_loss}
  slices          slicing -> list of {its attributes, n_items, weight, precision_loss, recall_loss, scores}
  source_pairs    with --slice-pairs: attribute -> list of {pair, source, other_source, pair_tp, pair_fp, pair_fn,
                  pair_precision, pair_recall, pair_f1}
  warnings        list of {code, level (warning, note), message, figures}
  not_computed    score of a family -> reason
  opened          with --show: list of clusters; see: fastbcubed show --help
  repairs         with --repairs: list of {rank, kind, side, cluster, n_items, weight, gain, running, precision_gain,
                  recall_gain, running_precision, running_recall}
  manifest        versions, engine, memory_limit, arguments that were given;
                  truth, prediction -> rows, fingerprint (of all rows, whatever their order and file format)
  gates           with gates: list of {gate, passed, score, slice, value, at_least | at_most | baseline, ...};
                  with a baseline n_items, baseline_n_items, and a reason if fewer items are scored than then
  errors, units   score -> standard error by component of truth and prediction; {n, effective, largest_share}
"""

SHOWN = """\
What to open
  A label or id is written as it is, in the type of the column; the parts of a composite one with commas between
  them (a comma in a part is written \\,), bytes in hexadecimal digits. Flags are repeatable.
  A result has items if it was written with --out DIR --keep items.

Examples
  fastbcubed show results --pred 4711 --columns name,year
  fastbcubed show truth.parquet pred.parquet --true 'Ada Lovelace' --item crm,17 --members 50
  fastbcubed evaluate truth.parquet pred.parquet --show 3

JSON (--json): one object. Later versions may add keys; these stay.
  opened          list of clusters and items
    cluster       side, cluster, n_items, weight, n_parts, outcome, precision_loss, recall_loss, weighted, overlapping,
                  columns, parts, one_sided {n_items, policy, members}
    its parts     true_cluster or pred_cluster, n_items, weight, n_items_of_cluster, both losses, members
    a member      item, weight, attributes
    item          item, true_cluster, pred_cluster, weight, tp, fp, fn, tn, scores, attributes, members
"""

WARM_UP = """\
Compile the kernels and keep them, so that no evaluation has to wait for that: when the image of a
container is built, for example with this line of a Dockerfile.

  RUN pip install fastbcubed && fastbcubed warm-up

The kernels are kept in the directory that NUMBA_CACHE_DIR names, else beside the installed package, else
in ~/.cache/numba. If NUMBA_CACHE_DIR is set, set it to the same directory when the container runs. The kernels
are found there even if the container may not write to it. They serve the kind of processor that they were
compiled on; if NUMBA_CPU_NAME=generic is set both times, they serve any.
"""

SHAPES = """\
Shapes (of the true clusters)
  er              sizes geometric with mean 2.5, as in entity resolution
  heavy           sizes Zipf with exponent 1.9, at most 5 % of all items
  singletons      one item each
  one_giant       one with half of all items, the rest as in er
  The prediction splits 15 % of them in two (if they have two items) and merges 10 % with another one; it
  leaves the giant as it is. The same seed, shape and number of items give the same rows.

Examples
  fastbcubed generate items.parquet --items 1e9
  fastbcubed evaluate truth prediction --table items.parquet
  fastbcubed generate truth.parquet --prediction-out pred.parquet --items 1e8 --ids string --attributes
  fastbcubed evaluate truth.parquet pred.parquet --slice country
"""

EXIT_CODES = """\
Exit codes
  0    all went well
  1    a gate failed: a score, a warning or a comparison with the baseline, see the gates above
  2    wrong input or use, or no memory or disk left; a message says what to do
  70   an error of fastbcubed itself; FASTBCUBED_TRACEBACK=1 shows where, please report it
  130  Ctrl-C; 143 SIGTERM; 141 nobody reads the output any more
Nothing half-written and nothing spilled is left in any case."""
