// Write index.js and texts.js of the places that come as JSON. Called by search.py with the folder.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "./engine.mjs";

const folder = process.argv[2];
const places = JSON.parse(readFileSync(0, "utf8"));
const rows = JSON.stringify(places.map(({ url, page, title, kind }) => [url, page, title, kind]));
writeFileSync(join(folder, "index.js"), `bookSearch.fill(${build(places)},${rows});\n`);
writeFileSync(join(folder, "texts.js"), `bookSearch.tell(${JSON.stringify(places.map(({ text }) => text))});\n`);
