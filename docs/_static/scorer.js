// Search ranks guides first, and the lists of changes and of times, which have every word, last.
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
    const [page, , anchor, , score] = result;
    if (/^(CHANGELOG|CONTRIBUTING|benchmarks\/)/.test(page)) return score / 20 - 100;
    if (/^docs\/reference\/scores\//.test(page) && anchor) return score / 4; // headings that all these pages have
    return /^docs\/(start|how-to|explanation)/.test(page) ? score + 4 : score;
  },
};
