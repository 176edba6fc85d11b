// What a test asks of training.js in more than one call.
import { batches, generator, serve } from "../../ropebook/figures/training.js";

/** 700 uniform numbers, 64 normal ones, and 9 whole ones below 50. */
export function drawn(seed) {
  const random = generator(seed);
  return [...random.uniform(700), ...random.normal(64), ...Array.from({ length: 9 }, () => random.whole(50))];
}

export function firstBatches(task, split, seed, size, length, count) {
  const draw = batches(task, split, seed, size, length);
  return Array.from({ length: count }, draw);
}

/** Train in slices, with a pause on the way; then begin again and stop at once. */
export async function rehearsal(how) {
  const wanted = { task: "copy", how, rate: 0.01, seed: 0, steps: 12 };
  const losses = [];
  let heard = () => {};
  let trained = false;
  const tell = serve((said) => {
    losses.push(...(said.losses ?? []));
    trained ||= said.trained;
    heard();
  });
  const first = new Promise((go) => (heard = go));
  tell({ start: wanted });
  await first;
  tell({ pause: true });
  await new Promise((go) => setTimeout(go, 300));
  const paused = losses.length;
  tell({ resume: true });
  while (!trained) await new Promise((go) => setTimeout(go, 20));
  const found = [...losses];
  losses.length = 0;
  tell({ start: wanted });
  tell({ stop: true });
  await new Promise((go) => setTimeout(go, 300));
  return { losses: found, paused, steps: wanted.steps, "after stop": losses.length };
}
