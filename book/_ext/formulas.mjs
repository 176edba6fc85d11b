// Typeset the formulas of a page: the fonts' folder and [[TeX, displayed], ...] in, their HTML, their
// sizes in em (width, height, depth) and the style sheet out. A formula that is none fails.
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
const { adaptor, document, output } = mathjax.startup;
const html = [];
const sizes = [];
for (const [latex, display] of formulas) {
  try {
    html.push(adaptor.outerHTML(await mathjax.tex2chtmlPromise(latex, { display })));
    const item = new document.options.MathItem(latex, document.inputJax[0], display);
    item.setMetrics(16, 8, 1e6, 1e6, 1);
    item.compile(document);
    const { w, h, d, L, R } = output.getBBox(item, document);
    sizes.push([w + L + R, h, d]);
  } catch (error) {
    console.error(`${latex}: ${error.message}`);
    process.exit(1);
  }
}
console.log(JSON.stringify({ html, sizes, style: adaptor.textContent(mathjax.chtmlStylesheet()) }));
