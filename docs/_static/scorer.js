// Search ranks what is written for users before the lists of changes and of times, which have every word.
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
    const [page, , , , score] = result;
    return /^(CHANGELOG|CONTRIBUTING|benchmarks\/)/.test(page) ? score / 20 - 100 : score;
  },
};
