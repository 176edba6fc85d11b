// Drop the rules that no page can match from the site's style sheets, and make the site's own
// scripts and style sheets small; put those of every page into one. Called by static_files.py with
// the folder of the site, the name of the one sheet, and its parts.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { transform } from "esbuild";
import { PurgeCSS } from "purgecss";

const [site, oneSheet, ...parts] = process.argv.slice(2);
const files = readdirSync(site, { recursive: true }).map((name) => join(site, name));
// what lies in vendor brings its own style and is small already, and so are the figures and the search
const done = ["vendor", "figures", "search"].map((folder) => join("_static", `${folder}/`));
const own = files.filter((name) => !done.some((at) => name.includes(at)));
const ending = (end) => own.filter((name) => name.endsWith(end));

const figures = files.filter((name) => name.includes(done[1]) && name.endsWith(".js"));

const purged = await new PurgeCSS().purge({
  content: [...ending(".html"), ...ending(".js"), ...figures],
  css: ending(".css"),
  safelist: { deep: [/bs-|tooltip|popover|modal|dropdown|collapsing/] }, // made at run time
});
for (const { css, file } of purged) writeFileSync(file, css);

// At its end the theme measures every block of code and changes it, one by one, and each time the
// browser lays out the whole page; book.js does the same at once, after the layout.
const MEASURES = /("complete"===document\.readyState)\?(\w+)\(\):window\.addEventListener\("load",\2\)/;

for (const name of [...ending(".js"), ...ending(".css")]) {
  const loader = name.endsWith(".js") ? "js" : "css";
  let text = readFileSync(name, "utf8");
  if (name.endsWith("pydata-sphinx-theme.js")) {
    if (!MEASURES.test(text)) throw new Error(`${name} no longer ends with what measures blocks of code`);
    text = text.replace(MEASURES, "$1");
  }
  const { code } = await transform(text, { loader, minify: true });
  writeFileSync(name, code);
}

// the parts lie in _static or a folder below
const text = parts.map((name) => readFileSync(name, "utf8").replace(/@(import|charset) ?"[^"]*";/g, ""));
writeFileSync(join(site, "_static", oneSheet), text.join("\n").replaceAll("url(../", "url("));
