// What checkpoint_file.js makes of a file, from its bytes in hexadecimal, and how many bytes it read.
import { configOf, readFiles } from "../../ropebook/figures/checkpoint_file.js";

/** { name, text, rows, notes, config, of, read }, or { refused } with what is wrong. */
export async function dropped(name, hex) {
  const all = Uint8Array.from(Buffer.from(hex, "hex"));
  let read = 0;
  const slice = (from, to) => ({
    arrayBuffer: async () => {
      const part = all.slice(from, to);
      read += part.length;
      return part.buffer;
    },
  });
  try {
    const found = await readFiles([{ name, size: all.length, slice }]);
    const { config, ...of } = configOf(found.text);
    return { ...found, config, of, read };
  } catch (problem) {
    if (problem.constructor.name !== "Refused") throw problem;
    return { refused: problem.message };
  }
}
