// The search of the site. A result is a section, a documented name or a term of the glossary. It ranks by where it has
// the words of the query: in its title, among the further words that its readers use, in its text, or in the title of its
// page; rare words count more. The text of an error leads to the section that explains it.
const KINDS = [
  [/^(CHANGELOG|CONTRIBUTING|benchmarks\/)/, 0], // after all others: lists, which have every word
  [/^docs\/reference\/json\//, 0.4],
  [/^docs\/reference\/api\/Evaluation$/, 0.65], // of several methods of one name
  [/^docs\/reference\/(api|commands)\//, 0.6],
  [/^notebooks\//, 0.7],
  [/^docs\/reference\/scores\//, 0.5],
  [/^docs\/start/, 1.1],
  [/^/, 1],
];
const NAMED = /^docs\/reference\/(api|commands|scores)\//; // whose titles are names
const RESULTS = 30;
const EXTRACT = 200; // characters

const stemmer = new Stemmer();
const STOPS = new Set([
  ...STOP_WORDS,
  ..."instead need needed use using get way want work works support supported please help problem per vs versus just every".split(" "),
  // what the items are is seldom what a question is about
  ..."customer customers people person persons patient patients product products author authors user users supplier suppliers employee employees company companies".split(" "),
]);
const known = new Map(); // the stem of each word
function stem(word) {
  if (!known.has(word)) {
    const american = word.replace(/is(e[drs]?|ing|ations?)$/, "iz$1").replace(/^(behavi|col|neighb)our/, "$1or");
    known.set(word, stemmer.stemWord(american.replace(/^licence/, "license")));
  }
  return known.get(word);
}
const split = (text) =>
  text
    .toLowerCase()
    .replace(/b[- ]?(cubed|³)/g, "bcubed")
    .replace(/\bf[- ](score|measure)/g, "f$1")
    .replace(/\bground[- ]?truth|\bgold standard/g, "truth")
    .replace(/\b(no|without)( any| a)? (truth|labels?|gold(en)? data)\b/g, "withouttruth $3")
    .replace(/\bp[- ]value/g, "pvalue")
    .match(/[\p{L}\p{N}]+(\.\d+)*/gu) ?? [];
const stems = (text) => split(text).map(stem);
const bare = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, ""); // V-measure is v_measure

// Questions whether there is something lead to the list of what there is not.
const WHETHER = /^(can|could|do|does|is|are|will)\b|\b(itself|support|supports|possible)\b/i;
const LIMITS = "docs/reference/limits";
// The code of a warning leads to the table of all codes.
const WARNINGS = "docs/reference/warnings";

// Words of readers, and words of the guides that may mean the same.
const SYNONYMS = [
  ["nan undefined na none empty", "null"],
  ["oom ram memoryerror killed crash crashes crashed died dies segfault", "memory"],
  ["hang hangs stuck freezes", "slow"],
  ["core cores cpu cpus nproc", "threads"],
  ["cuda cupy cudf rapids", "gpu"],
  ["modin vaex", "dask"],
  ["multilabel", "multi overlapping"],
  ["language", "words"],
  ["mysql mariadb oracle redshift mssql jdbc odbc sql psycopg2 databases", "database query cursor"],
  ["postgres", "postgresql psycopg"],
  ["gz zip zst zstd bz2", "gzip compressed"],
  ["kafka flink realtime online", "streaming incremental"],
  ["kubernetes k8s helm podman singularity apptainer dockerfile", "container docker"],
  ["jenkins gitlab circleci travis build pipeline", "job ci"],
  ["prefect luigi argo scheduler cron", "airflow nightly"],
  ["charset utf8 codec mojibake unicode", "encoding utf"],
  ["leak leaking overfit overfitting holdout contamination", "leakage trained"],
  ["gdpr pii confidential confidentiality anonymous secret", "privacy disclose"],
  ["monitor monitoring drift alert dashboard grafana trend", "follow nightly"],
  ["unsupervised calinski davies bouldin dunn", "silhouette"],
  ["b3 b³ bcube cubed", "bcubed"],
  ["fscore fmeasure", "f1 fbeta"],
  ["ari", "adjusted_rand"],
  ["confidence uncertainty certainty margin", "interval"],
  ["metric metrics measure measures", "score"],
  ["gold reference annotation annotations", "truth"],
  ["hypothesis", "prediction"],
  ["entity entities communities community groups", "cluster"],
  ["group groupby", "slice within"],
  ["rows records mentions cells nodes", "item"],
  ["subgroup segment stratify cohort", "slice"],
  ["overmerging overmerged undersegmentation", "merged"],
  ["oversplit oversplitting fragmentation fragmented", "split"],
  ["graphs plot plots plotting matplotlib seaborn figure visualize visualise", "chart"],
  ["powerpoint pptx slides presentation", "slide png"],
  ["upgrade upgraded upgrading", "versions version"],
  ["reproduce repeatable", "deterministic reproducible"],
  ["silence mute hide ignore disable", "suppress"],
  ["bibtex doi paper", "cite"],
  ["significance significant pvalue", "difference"],
  ["unhashable nested", "lists"],
  ["lengths", "length long"],
  ["jsonl ndjson", "json lines"],
  ["xls xlsx spreadsheet openpyxl", "excel"],
  ["louvain leiden modularity", "networkx communities"],
  ["anndata seurat obs", "scanpy"],
  ["household", "unit"],
  ["golden", "truth"],
  ["removed", "lost"],
  ["hierarchical hierarchy", "hierarchies"],
  ["evaluate evaluation", "score"],
  ["order", "swapped"],
  ["verbose", "logging"],
  ["bigger larger biggest largest big", "large"],
  ["speed performance faster fastest throughput benchmark", "fast"],
  ["calibration", "calibrated"],
  ["subsidiary corporate", "subsidiaries"],
  ["persistent", "stable keep"],
  ["identifier identifiers", "ids"],
  ["mac macbook osx m1", "macos"],
  ["hdbscan optics", "dbscan"],
  ["outlier outliers", "noise"],
  ["terminal shell bash", "command"],
  ["cli", "commands"],
  ["runtime duration elapsed seconds minutes hours", "long take"],
  ["huggingface", "hugging"],
  ["equal same", "identical"],
  ["dominate dominates dominated huge giant", "large"],
  ["cold", "first warm"],
  ["percent percentage fraction proportion ratio", "share"],
  ["kappa krippendorff fleiss agreement", "annotators"],
  ["model algorithm method version variant system experiment candidate", "run"],
  ["better", "best"],
  ["field attribute feature variable", "column"],
  ["rename renamed", "names"],
  ["exception traceback raises throws", "error"],
  ["abort halt quit", "stop"],
  ["timeout deadline budget", "limit"],
  ["combine concat concatenate append", "merge"],
  ["client boss ceo executive stakeholder management director", "manager"],
  ["sort sorted", "order"],
  ["cutoff", "threshold"],
  ["optimal optimum", "best"],
  ["rest http endpoint microservice webservice", "server"],
  ["ui webapp website streamlit", "gui dashboard"],
  ["deprecated deprecation semver", "compatibility"],
  ["wheel pypi uv poetry", "install"],
  ["airgapped airgap firewall proxy", "offline"],
  ["fuzzy", "soft"],
  ["mistake mistakes", "errors"],
  ["tuning tune optuna hyperparameter", "gridsearchcv threshold"],
  ["clerical reviewer labeller labeler", "reviewers judged"],
  ["dedupe dedup deduplicate deduplication", "duplicates"],
  ["lambda serverless", "kubernetes"],
  ["azure gcs bucket blob", "uri s3"],
  ["regression", "gates drops"],
  ["slack email notification", "mail"],
  ["math equation", "formula"],
  ["interpret interpretation", "mean read"],
  ["extra additional", "missing"],
].map((each) => each.map(stems));

const titles = new Map(SECTIONS.filter(([, anchor]) => anchor === "").map(([page, , title]) => [page, title]));
const places = SECTIONS.map(([page, anchor, title, text, also]) => {
  const words = stems(text);
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const context = anchor === "" ? "" : titles.get(page);
  return {
    ...{ page, anchor, title, text, context, counts, length: words.length },
    kind: KINDS.find(([pattern]) => pattern.test(page))[1],
    own: new Set(stems(page.includes("/api/") ? title.split(": ")[0] : title)),
    also: new Set(stems(also)),
    phrases: ` ${stems(`${title}, ${also}`).join(" ")} `,
    above: new Set(stems(context)),
    names: (NAMED.test(page) ? title.split(": ")[0].split(/, |\./) : anchor ? [] : [title]).map(bare),
  };
});
const guides = new Map(); // the number of places, but for the lists, that have a word
for (const { counts, own, also, kind } of places)
  if (kind > 0)
    for (const word of new Set([...counts.keys(), ...own, ...also])) guides.set(word, (guides.get(word) ?? 0) + 1);
// Each message of an error, with the section that explains it.
const errorTexts = MESSAGES.flatMap(([anchor, name, texts]) => {
  const place = places.find((each) => each.page === ERRORS && each.anchor === anchor);
  return texts.map((text) => ({ place, text: `${name}: ${text}`, words: stems(`${name} ${text}`) }));
});

// Return what a word of a query may stand for, with its share: itself, synonyms, and, if no guide has it, longer words
// or words that differ by a letter.
function meanings(word, query) {
  const others = SYNONYMS.flatMap(([said, meant]) => (said.includes(word) ? meant : []));
  for (const alike of [(each) => each.startsWith(word), (each) => each.length > 4 && isTypo(word, each)])
    if (!guides.has(word) && others.length === 0 && word.length > 3) others.push(...[...guides.keys()].filter(alike));
  const share = guides.has(word) ? 0.5 : 0.9;
  const further = others.filter((each) => !query.includes(each)).map((each) => [each, share]);
  return [[word, 1], ...further].filter(([each]) => guides.has(each));
}

// Return whether two words differ by one letter that is left out, added or changed, or by two that are swapped.
function isTypo(one, other) {
  if (Math.abs(one.length - other.length) > 1) return false;
  let [first, last] = [0, 0];
  while (first < one.length && one[first] === other[first]) first++;
  while (last < Math.min(one.length, other.length) - first && one.at(-1 - last) === other.at(-1 - last)) last++;
  const [left, right] = [one, other].map((each) => each.slice(first, each.length - last));
  return Math.max(left.length, right.length) <= 1 || (left.length === 2 && left === [...right].reverse().join(""));
}

function strength({ counts, own, also, above, length }, word) {
  const times = counts.get(word) ?? 0;
  const title = own.has(word) ? 3 / (1 + own.size / 40) : also.has(word) ? 2.4 / (1 + also.size / 60) : 0;
  return title + (above.has(word) ? 0.8 : 0) + (1.6 * times) / (times + 0.5 + length / 300);
}

// Return the places that have words of a query, best first, and the words, each with its meanings.
function search(query) {
  const whole = bare(query);
  const said = [...new Set(split(query))];
  const words = said.map((word, k) => {
    // record linkage is recordlinkage
    const joint = [said.slice(k - 1, k + 1), said.slice(k, k + 2)].map((pair) => stem(pair.join("")));
    const all = [
      ...meanings(stem(word), said.map(stem)),
      ...joint.filter((each) => guides.has(each)).map((each) => [each, 1]),
    ];
    const rarity = all.length > 0 ? Math.log(1 + places.length / guides.get(all[0][0])) : 0;
    return { word, all, weight: STOPS.has(word) || /^[\d.]+$/.test(word) ? rarity / 6 : rarity };
  });
  const sum = words.reduce((total, { weight }) => total + weight, 0);
  const chosen = words.filter(({ word, weight }) => weight > 0 && !STOPS.has(word));
  const pairs = chosen
    .slice(1)
    .map(({ word, weight }, k) => [` ${stem(chosen[k].word)} ${stem(word)} `, (weight + chosen[k].weight) / 2]);
  const isCode = CODES.some((code) => query.toLowerCase().includes(code));
  const results = places.map((place) => {
    const isNamed = place.names.includes(whole) || (isCode && place.page === WARNINGS && place.anchor === "");
    let [score, covered] = [isNamed ? 100 : 0, 0];
    for (const { all, weight } of words) {
      const best = Math.max(0, ...all.map(([word, share]) => share * strength(place, word)));
      score += weight * best;
      covered += (weight / sum) * Math.min(1, best);
    }
    for (const [pair, weight] of pairs) if (place.phrases.includes(pair)) score += weight;
    if (place.page === LIMITS && WHETHER.test(query)) score *= 1.6;
    if (whole.length > 3 && bare(place.title).includes(whole)) score *= 1.5;
    return { place, score: score * covered * (place.kind || 1) };
  });
  const isAbove = ({ place }) => place.kind > 0 || place.names.includes(whole);
  const order = (a, b) => isAbove(b) - isAbove(a) || b.score - a.score;
  const raised = explained(new Set(said.map(stem)));
  const rest = results.filter(({ place, score }) => score > 0 && place !== raised?.place);
  return { words, results: [...(raised ? [raised] : []), ...rest.sort(order)] };
}

// Return the section on the message of an error that most of the words of a query are from, if they are most of its
// words, or else on the class of errors that the query names.
function explained(query) {
  let best = { score: 0 };
  for (const { place, text, words } of errorTexts.filter((each) => each.place)) {
    const shared = words.filter((word) => query.has(word));
    if (new Set(shared.filter((word) => !STOPS.has(word))).size < 4) continue;
    const [ofMessage, ofQuery] = [shared.length / words.length, new Set(shared).size / query.size];
    if (ofMessage < 0.6 || ofQuery < 0.35) continue;
    if (ofMessage * ofQuery > best.score) best = { place, text, score: ofMessage * ofQuery };
  }
  return best.place ? best : errorTexts.find(({ place, words }) => place && query.has(words[0]));
}

function show(query) {
  const area = document.getElementById("search-results");
  const { words, results } = search(query);
  const unknown = words.filter(({ word }) => !guides.has(stem(word))).map(({ word }) => word);
  const meant = new Set(words.flatMap(({ all }) => all.map(([each]) => each)));
  const status = element("p", "search-summary", `${results.length} sections have words of the query.`);
  area.append(element("h2", "", "Results"), status);
  if (unknown.length > 0) {
    const others = words
      .filter(({ word }) => unknown.includes(word))
      .flatMap(({ all }) => all.map(([each]) => [...known].find(([, found]) => found === each)[0]));
    const hint = element(
      "p",
      "search-hint",
      `No guide has ${listed(unknown)}${others.length > 0 ? `; these sections have ${listed(others)}` : ""}. `,
    );
    hint.append(
      "See also ",
      link("docs/how-to/short-answers", "", "All questions"),
      " and the ",
      link("docs/reference/glossary", "", "Glossary"),
      ".",
    );
    area.append(hint);
  }
  const list = element("ul", "search", "");
  for (const { place, text } of results.slice(0, RESULTS)) {
    const item = element("li", "", "");
    item.append(
      link(place.page, place.anchor, place.title),
      element("span", "page", place.context && ` in ${place.context}`),
      extract(text ?? place.text, meant),
    );
    list.append(item);
  }
  area.append(list);
}

const listed = (words) => words.map((word) => `“${word}”`).join(" or ");

function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(text);
  return made;
}

function link(page, anchor, text) {
  const made = element("a", "", text);
  made.href = `${document.documentElement.dataset.content_root}${page}.html${anchor && "#"}${anchor}`;
  return made;
}

// Return the part of a text that has most words of a query, which are bold.
function extract(text, meant) {
  const words = [...text.matchAll(/[\p{L}\p{N}]+(\.\d+)*/gu)].filter(
    ([word]) => meant.has(stem(word.toLowerCase())) && !STOPS.has(word.toLowerCase()),
  );
  const within = (k) =>
    new Set(
      words
        .slice(k)
        .filter(({ index }) => index < words[k].index + EXTRACT - 40)
        .map(([word]) => word.toLowerCase()),
    ).size;
  const first = words.reduce((best, _, k) => (within(k) > within(best) ? k : best), 0);
  const about = words.length > 0 ? words[first].index - 40 : 0;
  const begin = about > EXTRACT / 2 ? text.indexOf(" ", about) + 1 : 0;
  const end = text.length > begin + EXTRACT ? text.lastIndexOf(" ", begin + EXTRACT) : text.length;
  const made = element("p", "context", begin > 0 ? "… " : "");
  let from = begin;
  for (const { 0: word, index } of words.filter(({ index }) => index >= begin && index < end)) {
    made.append(text.slice(from, index), element("b", "", word));
    from = index + word.length;
  }
  made.append(text.slice(from, end), end < text.length ? " …" : "");
  return made;
}

const query = new URLSearchParams(location.search).get("q") ?? "";
if (query) {
  for (const field of document.querySelectorAll("form.bd-search input")) field.value = query;
  show(query);
}
