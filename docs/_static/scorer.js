// Search ranks guides first, and the lists of changes and of times, which have every word, last. A page that has the words ranks by how
// many of them its headings have, and the result leads to the heading that has most: Sphinx's own index has words of whole pages only.
const stemmer = new Stemmer();
const bare = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, ""); // V-measure is v_measure
const stems = (text) => new Set(splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word)));
const index = { query: "", words: null, headings: new Map() }; // headings by page

function readIndex() {
  const { terms, titleterms, alltitles, docnames } = Search._index; // which have no stop words
  index.query = new URLSearchParams(location.search).get("q") ?? "";
  index.words = [...stems(index.query)].filter((word) => Object.hasOwn(terms, word) || Object.hasOwn(titleterms, word));
  for (const [title, places] of Object.entries(alltitles)) {
    const has = stems(title);
    const share = index.words.filter((word) => has.has(word)).length / index.words.length;
    for (const [file, id] of share > 0 ? places : []) {
      const headings = index.headings.get(docnames[file]) ?? [];
      headings.push({ title, id, share: share - title.length / 1e4 }); // of two headings, the shorter
      index.headings.set(docnames[file], headings);
    }
  }
}

// Sphinx finds only pages that have every word of a query. If only the lists do, add the pages that have most of the words. And a
// sentence may have a word too many: of three words, a heading that has most leads to its page although the page lacks another.
const LISTS = /^(CHANGELOG|CONTRIBUTING|benchmarks\/)/;
const SCORES = /^docs\/reference\/scores\//; // pages with the same headings
const withEveryWord = Search.performTermsSearch;
Search.performTermsSearch = (words, excluded) => {
  const found = withEveryWord(words, excluded);
  const known = found.some(([page]) => !LISTS.test(page));
  if (known && words.size < 3) return found;
  if (index.words === null) readIndex();
  const share = (page) => Math.max(0, ...(index.headings.get(page) ?? []).map((each) => each.share));
  const pages = new Map(); // each with its result and how many of the words it has
  for (const each of [...words].flatMap((word) => withEveryWord(new Set([word]), excluded)))
    pages.set(each[0], { each, n: (pages.get(each[0])?.n ?? 0) + 1 });
  const guides = [...pages.values()].filter(({ each }) => !LISTS.test(each[0]));
  const most = Math.max(...guides.map(({ n }) => n));
  const best = Math.max(0.6, ...found.map(([page]) => (LISTS.test(page) ? 0 : share(page) + 0.05)));
  const isBetter = ({ each }) => !SCORES.test(each[0]) && share(each[0]) > best;
  return [...found, ...guides.filter(known ? isBetter : ({ n }) => n === most).map(({ each }) => each)];
};

// Below a result that leads to a whole page is a link to the section that has most of the words, of which rare ones count more.
const summarize = Search.makeSearchSummary;
Search.makeSearchSummary = (html, words, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll(".headerlink").forEach((each) => each.remove());
  const begins = [...words].map((word) => new RegExp(`\\b${_escapeRegExp(word.replace(/i$/, ""))}`, "i")); // memori is of memory
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
