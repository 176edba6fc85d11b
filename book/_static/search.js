// What a result shows of its page: prose. Sphinx shows whatever stands around the word: contents,
// code, or of a glossary's entry the word alone.
const PROSE = "p, li, dt, dd, h1, h2, h3, td, th, summary";

// biome-ignore lint/correctness/noUndeclaredVariables: searchtools.js declares it
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const article = page.querySelector("article") ?? page.body;
  const found = anchor ? article.querySelector(anchor) : null;
  const part = (found?.matches("dt") ? found.nextElementSibling : found) ?? article;
  for (const node of part.querySelectorAll("pre, script, style, .headerlink, .cite, .skip-figure")) node.remove();
  for (const block of part.querySelectorAll(PROSE)) block.append(" ");
  return part.textContent.replace(/\s+/g, " ");
};
