// Typeset the formulas of a page: the fonts' folder and [[TeX, displayed], ...] in, their HTML and
// its style sheet out. A formula that is none fails.
import { text } from "node:stream/consumers";
import MathJax from "mathjax/es5/node-main.js";

const [fonts, formulas] = JSON.parse(await text(process.stdin));
const mathjax = await MathJax.init({
  loader: { load: ["input/tex", "output/chtml", "a11y/assistive-mml"] },
  chtml: { fontURL: fonts },
  tex: {
    formatError(_, error) {
      throw error;
    },
  },
});
const { adaptor } = mathjax.startup;
const html = [];
for (const [latex, display] of formulas) {
  try {
    html.push(adaptor.outerHTML(await mathjax.tex2chtmlPromise(latex, { display })));
  } catch (error) {
    console.error(`${latex}: ${error.message}`);
    process.exit(1);
  }
}
console.log(JSON.stringify({ html, style: adaptor.textContent(mathjax.chtmlStylesheet()) }));
