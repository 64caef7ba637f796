// Search ranks guides first, and the lists of changes and of times, which have every word, last. A page that has the words ranks by how
// many of them its headings have, and the result leads to the heading that has most: Sphinx's own index has words of whole pages only.
const stemmer = new Stemmer();
const bare = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, ""); // V-measure is v_measure
const stems = (text) => new Set(splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word)));
const LISTS = /^(CHANGELOG|CONTRIBUTING|benchmarks\/)/;
const SCORES = /^docs\/reference\/scores\//; // pages with the same headings
const index = { query: "", words: null, headings: new Map() }; // headings by page

// Words of readers, and words of the guides with the same meaning. If no guide has a word on the left, the search looks for any of
// those on the right instead. If a guide has it, pages with a word on the right are found as well, and rank lower.
const SYNONYMS = [
  ["nan undefined na none empty", "null"],
  ["oom ram memoryerror killed crash crashes crashed died dies segfault", "memory"],
  ["hang hangs stuck freezes", "slow"],
  ["core cores cpu cpus nproc", "threads"],
  ["cuda cupy cudf rapids", "gpu"],
  ["modin vaex", "dask"],
  ["multi multilabel", "overlapping"],
  ["language", "words"],
  ["mysql mariadb oracle redshift mssql jdbc odbc sql psycopg2 databases", "database query cursor"],
  ["postgres", "postgresql psycopg"],
  ["gz zip zst zstd bz2", "gzip compressed"],
  ["kafka flink realtime online", "streaming incremental"],
  ["kubernetes k8s helm podman singularity apptainer dockerfile", "container docker"],
  ["jenkins gitlab circleci travis", "job ci"],
  ["prefect luigi argo scheduler cron", "airflow nightly"],
  ["charset utf8 codec mojibake unicode", "encoding utf"],
  ["leak leaking overfit overfitting holdout contamination", "leakage trained"],
  ["gdpr pii confidential confidentiality anonymous secret", "privacy disclose"],
  ["monitor monitoring drift alert dashboard grafana trend", "follow nightly"],
  ["unsupervised calinski davies bouldin dunn", "silhouette"],
  ["b3 b³ bcube cubed", "bcubed"],
  ["fscore fmeasure", "f1"],
  ["ari", "adjusted_rand"],
  ["confidence uncertainty certainty ci margin", "interval"],
  ["metric metrics measure measures", "score"],
  ["gold ground reference annotation annotations", "truth"],
  ["hypothesis", "prediction"],
  ["entity entities communities community groups", "cluster"],
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
  ["significance significant pvalue", "p difference"],
  ["unhashable nested", "lists"],
  ["lengths", "length long"],
  ["jsonl ndjson", "json lines"],
  ["xls xlsx spreadsheet openpyxl", "excel"],
  ["louvain leiden modularity", "networkx communities"],
  ["anndata seurat obs", "scanpy"],
  ["household", "unit"],
].map(([said, meant]) => [stems(said), [...stems(meant)]]);
const alike = (word) => SYNONYMS.flatMap(([said, meant]) => (said.has(word) ? meant : [])).filter(inGuides);

function inGuides(word) {
  const { terms, titleterms, docnames } = Search._index; // which have no stop words
  const pages = [terms, titleterms].flatMap((each) => (Object.hasOwn(each, word) ? each[word] : []));
  return pages.some((page) => !LISTS.test(docnames[page]));
}

function readIndex() {
  const { alltitles, docnames } = Search._index;
  index.query = new URLSearchParams(location.search).get("q") ?? "";
  const all = [...stems(index.query)].map((word) => [inGuides(word) ? word : null, ...alike(word)]);
  index.words = all.filter(([word, ...others]) => word !== null || others.length > 0);
  const share = (has) => ([word, ...others]) =>
    has.has(word) ? 1 : others.some((each) => has.has(each)) ? 0.8 : 0;
  for (const [title, places] of Object.entries(alltitles)) {
    const has = index.words.map(share(stems(title))).reduce((a, b) => a + b, 0) / index.words.length;
    for (const [file, id] of has > 0 ? places : []) {
      const headings = index.headings.get(docnames[file]) ?? [];
      headings.push({ title, id, share: has - title.length / 1e4 }); // of two headings, the shorter
      index.headings.set(docnames[file], headings);
    }
  }
}

// Sphinx finds only pages that have every word of a query. If only the lists do, add the pages that have most of the words. And a
// sentence may have a word too many: of three words, a heading that has most leads to its page although the page lacks another.
const withEveryWord = Search.performTermsSearch;
Search.performTermsSearch = (words, excluded) => {
  const found = withSynonyms(words, excluded);
  const known = found.some(([page]) => !LISTS.test(page));
  if (known && words.size < 3) return found;
  if (index.words === null) readIndex();
  const share = (page) => Math.max(0, ...(index.headings.get(page) ?? []).map((each) => each.share));
  const pages = new Map(); // each with its result and how many of the words it has
  for (const each of [...words].flatMap((word) => withSynonyms(new Set([word]), excluded)))
    pages.set(each[0], { each, n: (pages.get(each[0])?.n ?? 0) + 1 });
  const guides = [...pages.values()].filter(({ each }) => !LISTS.test(each[0]));
  const most = Math.max(...guides.map(({ n }) => n));
  const best = Math.max(0.6, ...found.map(([page]) => (LISTS.test(page) ? 0 : share(page) + 0.05)));
  const isBetter = ({ each }) => !SCORES.test(each[0]) && share(each[0]) > best;
  return [...found, ...guides.filter(known ? isBetter : ({ n }) => n === most).map(({ each }) => each)];
};

// Return the results for the words, and then those with one word replaced by a synonym.
function withSynonyms(words, excluded) {
  const others = [...words].flatMap((word) =>
    alike(word).map((each) => new Set([...words].map((own) => (own === word ? each : own)))),
  );
  const own = [...words].every((word) => inGuides(word) || alike(word).length === 0);
  const found = new Map((own ? withEveryWord(words, excluded) : []).map((each) => [each[0], each]));
  for (const each of others.flatMap((some) => withEveryWord(some, excluded))) {
    each[4] -= 3;
    if (!found.has(each[0])) found.set(each[0], each);
  }
  return [...found.values()];
}

// Above the results is what they are not about: words that no guide has.
const query = Search.query;
Search.query = (text) => {
  query(text);
  const [, terms] = Search._parseQuery(text);
  const said = splitQuery(text).filter((word) => terms.has(stemmer.stemWord(word.toLowerCase())));
  const unknown = said.filter((word) => !inGuides(stemmer.stemWord(word.toLowerCase())));
  if (unknown.length === 0) return;
  const others = [...new Set(unknown.flatMap((word) => alike(stemmer.stemWord(word.toLowerCase()))))];
  const hint = document.createElement("p");
  hint.classList.add("search-hint");
  hint.append(`No guide has ${unknown.map((word) => `“${word}”`).join(" or ")}`);
  hint.append(others.length > 0 ? `; these pages have ${others.map((word) => `“${word}”`).join(" or ")}. ` : ". ");
  hint.append("See also ", linkTo("how-to/short-answers", "Short answers"), " and the ");
  hint.append(linkTo("reference/glossary", "Glossary"), ".");
  Search.status.after(hint);
};

function linkTo(page, text) {
  const link = document.createElement("a");
  link.href = `${document.documentElement.dataset.content_root}docs/${page}.html`;
  link.textContent = text;
  return link;
}

// Below a result that leads to a whole page is a link to the section that has most of the words, of which rare ones count more.
const summarize = Search.makeSearchSummary;
Search.makeSearchSummary = (html, words, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll(".headerlink").forEach((each) => each.remove());
  const begins = [...words]
    .flatMap((word) => (inGuides(word) ? word : alike(word)))
    .map((word) => new RegExp(`\\b${_escapeRegExp(word.replace(/i$/, ""))}`, "i")); // memori is of memory
  const title = page.querySelector("[role=main] h1")?.textContent ?? "";
  if (anchor || begins.every((each) => each.test(title))) return summarize(html, words, anchor);
  const sections = [...page.querySelectorAll("[role=main] section section[id]")].map((section) => ({
    id: section.id,
    text: section.textContent,
    heading: section.querySelector("h2, h3, h4, h5").textContent,
    share: -section.textContent.length / 1e6, // of two sections, the shorter
  }));
  for (const each of begins) {
    const having = sections.filter(({ text }) => each.test(text));
    for (const section of having) section.share += (each.test(section.heading) ? 1.5 : 1) / having.length;
  }
  const best = sections.reduce((a, b) => (b.share > a.share ? b : a), { share: 0 });
  if (!best.id) return summarize(html, words, anchor);
  const summary = summarize(html, words, `#${best.id}`);
  const link = document.createElement("a");
  link.href = `${html.match(/pagename = '([^']*)'/)[1]}.html#${best.id}`;
  link.textContent = best.heading;
  summary.prepend(link, ": ");
  return summary;
};

function scoreText(result) {
  if (index.words === null) readIndex();
  if (bare(result[1]) === bare(index.query)) return result[4] + 30;
  const headings = (index.headings.get(result[0]) ?? []).sort((a, b) => b.share - a.share);
  const [best, own] = [headings[0], headings.find((each) => each.id === null)];
  if (best && best.id !== null && best.share > Math.max(0.6, (own?.share ?? 0) + 0.1)) {
    result[1] += ` > ${best.title}`;
    result[2] = `#${best.id}`;
  }
  return result[4] + 10 * (best?.share ?? 0) + 5 * (own?.share ?? 0);
}

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: (result) => {
    const [page, , anchor, , , , kind] = result;
    const score = kind === "text" ? scoreText(result) : result[4];
    if (LISTS.test(page)) return score / 20 - 100;
    if (SCORES.test(page) && anchor) return score / 4;
    if (/^docs\/reference\/api\/Evaluation$/.test(page)) return score + 1; // of several methods of one name
    return /^docs\/(start|how-to|explanation)/.test(page) ? score + 4 : score;
  },
};
