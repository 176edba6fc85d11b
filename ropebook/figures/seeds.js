// What the scores of a few seeds say: the twin of experiments/summary.py.
const SIGNIFICANT = 0.05;
const COUNT = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"];

/** The median of some values, the second smallest and the second largest. */
export function spread(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const n = ordered.length;
  const median = (ordered[Math.floor((n - 1) / 2)] + ordered[Math.ceil((n - 1) / 2)]) / 2;
  return { median, low: ordered[1], high: ordered[n - 2] };
}

/** The exact two-sided p of paired differences: the share of all changes of sign that get as far. */
export function signFlip(differences) {
  const far = Math.abs(differences.reduce((sum, d) => sum + d, 0)) - 1e-12;
  const ways = 2 ** differences.length;
  let as = 0;
  for (let way = 0; way < ways; way++) {
    const sum = differences.reduce((total, d, i) => total + ((way >> i) & 1 ? -d : d), 0);
    if (Math.abs(sum) >= far) as += 1;
  }
  return as / ways;
}

/** p-values with Holm's correction. */
export function holm(p) {
  const corrected = [];
  let soFar = 0;
  const order = p.map((_, i) => i).sort((i, j) => p[i] - p[j]);
  order.forEach((i, rank) => {
    soFar = Math.max(soFar, Math.min(1, (p.length - rank) * p[i]));
    corrected[i] = soFar;
  });
  return corrected;
}

/** Compare a with b, each seed with itself; `less`: whether less is better. */
export function compare(a, b, less) {
  const differences = a.map((value, i) => value - b[i]);
  const gains = differences.map((d) => (less ? -d : d));
  const better = gains.filter((d) => d > 0).length;
  const worse = gains.filter((d) => d < 0).length;
  const p = signFlip(differences);
  return { ...spread(differences), better, worse, p, verdict: verdictOf(gains, better, worse, p) };
}

function verdictOf(gains, better, worse, p) {
  const n = gains.length;
  if (better === n || worse === n) return `${better ? "better" : "worse"} in all ${COUNT[n]} seeds`;
  if (better + worse === 0) return `the same in all ${COUNT[n]} seeds`;
  if (p >= SIGNIFICANT) return `undecided: ${COUNT[better]} of ${COUNT[n]} seeds better, ${COUNT[worse]} worse`;
  const [word, count] = gains.reduce((sum, d) => sum + d, 0) > 0 ? ["better", better] : ["worse", worse];
  return `${word} in ${COUNT[count]} of ${COUNT[n]} seeds`;
}
