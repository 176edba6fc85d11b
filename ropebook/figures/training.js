// training.js: the small transformer of experiments/model.py and its training in experiments/run.py,
// with the same seeds and batches. It runs in a worker or, in slices, beside a page.
//
//   const tell = serve(post);
//   tell({ start: { how, task, rate, seed, steps } });      then { pause: true }, { resume: true },
//   tell({ stretch: true });                                 { stop: true }
//
// post receives { step, losses, attention } as training goes on (the losses since the last one, and
// the mean attention of each layer at distances 0 .. 32), then { trained: true }; as texts are read,
// { read } (a part of 1), and { scores } at the end.
//
// `how` is an encoding, of which each part may be absent. theta: the inverse frequencies of each layer;
// local: how many keys a layer sees; slopes: ALiBi's; farthest: T5's; added: "sinusoidal" or "learned";
// before: x is rotated, not q and k; unmasked: the future is seen. A bug is one more part. mixed: k is
// rotated in halves; backwards: k is rotated the other way; restart: positions begin again so often.

export const WINDOW = 64;
export const TIMES = [1, 2, 4, 8];
const TEXTS = { 1: 32, 2: 16, 4: 16, 8: 8 };
const [WIDTH, HIDDEN, LAYERS, BATCH] = [32, 64, 2, 8];
const LONGEST = TIMES.at(-1) * WINDOW;
const WARMUP = 40;
const BUCKETS = 32; // of T5
const { fround } = Math;
const SLICE = 8; // ms before others have their turn
const REPORT = 120; // ms between two reports

// ---- random numbers, as torch draws them on a CPU ------------------------------------------------

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

/** The seed of a sequence of batches: zlib's crc32 of its name. */
function crc32(name) {
  let c = -1;
  for (const char of name) c = CRC[(c ^ char.charCodeAt(0)) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}

/** A Mersenne twister: { whole(n), uniform(count), normal(count) }. */
export function generator(seed) {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let i = 1; i < 624; i++) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let at = 624;
  const next = () => {
    if (at === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let y = state[at++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
  const uniform = (count) => Float64Array.from({ length: count }, () => (next() & 0xffffff) / 2 ** 24);
  return {
    whole: (n) => next() % n,
    uniform,
    /** Box and Muller in 32 bits, on blocks of sixteen; the count is a multiple of that. */
    normal(count) {
      const z = uniform(count);
      for (let i = 0; i < count; i += i % 8 === 7 ? 9 : 1) {
        const radius = fround(Math.sqrt(fround(-2 * fround(Math.log(1 - z[i])))));
        const angle = fround(fround(2 * Math.PI) * z[i + 8]);
        z[i] = fround(radius * fround(Math.cos(angle)));
        z[i + 8] = fround(radius * fround(Math.sin(angle)));
      }
      return z;
    },
  };
}

// ---- the tasks of experiments/tasks.py -----------------------------------------------------------

const [SYMBOLS, LAG, RARE, MARKS, QUERIES] = [16, 7, 8, 2, 16];
const QUERY = (1 + MARKS) * SYMBOLS;
const IGNORE = -1;

export const VOCABULARY = { copy: SYMBOLS, find: QUERY + MARKS, induction: 2 * SYMBOLS };

const symbols = (random, size, length) =>
  Array.from({ length: size }, () => Int32Array.from({ length }, () => random.whole(SYMBOLS)));

/** For each of some texts the places 0 .. length in a random order; `after` moves the others to the end. */
function shuffled(random, size, length, after = () => -1) {
  const drawn = Array.from({ length: size }, () => random.uniform(length));
  return drawn.map((keys, row) => {
    const key = (place) => (place > after(row) ? keys[place] : 2);
    return [...keys.keys()].sort((a, b) => key(a) - key(b));
  });
}

const unanswered = (tokens) => ({
  tokens,
  targets: new Int32Array(tokens.length).fill(IGNORE),
  distance: new Int32Array(tokens.length),
});

const TASKS = {
  copy: (random, size, length) =>
    symbols(random, size, length).map((tokens) => {
      const text = unanswered(tokens);
      text.targets.set(tokens.subarray(0, length - LAG), LAG);
      text.distance.fill(LAG);
      return text;
    }),

  find(random, size, length) {
    const texts = symbols(random, size, length);
    const marked = shuffled(random, size, length - QUERIES).map((order) => order.slice(0, MARKS));
    const asked = shuffled(random, size, length, (row) => Math.max(...marked[row]));
    return texts.map((tokens, row) => {
      const text = unanswered(tokens);
      const values = marked[row].map((place) => tokens[place]);
      marked[row].forEach((place, i) => (tokens[place] = values[i] + SYMBOLS * (i + 1)));
      for (const place of asked[row].slice(0, QUERIES)) {
        const which = random.whole(MARKS);
        tokens[place] = QUERY + which;
        text.targets[place] = values[which];
        text.distance[place] = place - marked[row][which];
      }
      return text;
    });
  },

  induction(random, size, length) {
    const texts = symbols(random, size, length);
    const places = shuffled(random, size, length);
    const rare = shuffled(random, size, SYMBOLS);
    return texts.map((tokens, row) => {
      for (let i = 0; i < 2 * RARE; i++) tokens[places[row][i]] = rare[row][i % RARE] + SYMBOLS;
      const text = unanswered(tokens);
      const last = new Map();
      tokens.forEach((token, t) => {
        const answer = last.get(token) + 1; // the place after the last one
        if (answer) [text.targets[t], text.distance[t]] = [tokens[answer], t - answer];
        last.set(token, t);
      });
      return text;
    });
  },
};

/** A function that draws batches: of `size` texts, the same sequence for every encoding. */
export function batches(task, split, seed, size, length) {
  const random = generator(crc32(`${task} ${split} ${seed}`));
  return () => TASKS[task](random, size, length);
}

// ---- the weights ---------------------------------------------------------------------------------

/** The initial weights of a seed, as one array and by name. */
export function initialWeights(task, seed, how) {
  const random = generator(seed);
  const vocabulary = VOCABULARY[task];
  const parts = [];
  const add = (name, values) => parts.push([name, values]);
  const normal = (rows) => random.normal(rows * WIDTH).map((z) => fround(0.5 * z));
  const uniform = (rows, columns) =>
    random.uniform(rows * columns).map((u) => fround(fround(2 * u - 1) / fround(Math.sqrt(rows))));
  add("embed", normal(vocabulary));
  for (let i = 0; i < LAYERS; i++) {
    for (const name of "qkvo") add(`${i}.${name}`, uniform(WIDTH, WIDTH));
    add(`${i}.up`, uniform(WIDTH, HIDDEN));
    add(`${i}.down`, uniform(HIDDEN, WIDTH));
    add(`${i}.up_bias`, new Float64Array(HIDDEN));
    add(`${i}.down_bias`, new Float64Array(WIDTH));
  }
  add("head", uniform(WIDTH, vocabulary));
  for (const norm of ["0.attention", "0.mlp", "1.attention", "1.mlp", "last"]) {
    add(`${norm}.gain`, new Float64Array(WIDTH).fill(1));
    add(`${norm}.shift`, new Float64Array(WIDTH));
  }
  if (how.added === "learned") add("learned", normal(LONGEST));
  if (how.farthest) add("t5", new Float64Array(BUCKETS));
  const all = new Float64Array(parts.reduce((sum, [, values]) => sum + values.length, 0));
  const names = [];
  let at = 0;
  for (const [name, values] of parts) {
    all.set(values, at);
    names.push([name, at, at + values.length]);
    at += values.length;
  }
  return { all, names, named: named(all, names) };
}

const named = (all, names) => Object.fromEntries(names.map(([name, from, to]) => [name, all.subarray(from, to)]));

// ---- the arithmetic ------------------------------------------------------------------------------

/** c[r, j] += sum over k of a[r, k] b[k, j], with steps of a and b between rows and columns; c is dense. */
function multiply(c, a, [ar, ak], b, [bk, bj], rows, inner, columns) {
  const add = (at, sum, next) => {
    c[at] += sum;
    c[at + 1] += next;
  };
  for (let r = 0; r < rows; r += 4) {
    for (let j = 0; j < columns; j += 2) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0; // biome-ignore format: one line
      for (let k = 0, p = r * ar, q = j * bj; k < inner; k++, p += ak, q += bk) {
        const x = b[q];
        const y = b[q + bj];
        s0 += a[p] * x;
        t0 += a[p] * y;
        s1 += a[p + ar] * x;
        t1 += a[p + ar] * y;
        s2 += a[p + 2 * ar] * x;
        t2 += a[p + 2 * ar] * y;
        s3 += a[p + 3 * ar] * x;
        t3 += a[p + 3 * ar] * y;
      }
      const at = r * columns + j;
      add(at, s0, t0);
      add(at + columns, s1, t1);
      add(at + 2 * columns, s2, t2);
      add(at + 3 * columns, s3, t3);
    }
  }
}

/** y += x W, W of shape (n, m). */
const forwards = (y, x, w, rows, n, m) => multiply(y, x, [n, 1], w, [m, 1], rows, n, m);

/** The gradients of the same: dx += dy W', dW += x' dy. */
function backwards(dy, x, w, dx, dw, rows, n, m) {
  multiply(dx, dy, [m, 1], w, [1, m], rows, m, n);
  multiply(dw, x, [1, n], dy, [m, 1], n, rows, m);
}

/** Layer norm: y, and the normed x and the deviations, which its gradient wants. */
function norm({ y, normed, deviation }, x, gain, shift) {
  for (let t = 0, at = 0; t < deviation.length; t++, at += WIDTH) {
    let [mean, square] = [0, 0];
    for (let i = 0; i < WIDTH; i++) mean += x[at + i] / WIDTH;
    for (let i = 0; i < WIDTH; i++) square += (x[at + i] - mean) ** 2 / WIDTH;
    deviation[t] = Math.sqrt(square + 1e-5);
    for (let i = 0; i < WIDTH; i++) {
      normed[at + i] = (x[at + i] - mean) / deviation[t];
      y[at + i] = normed[at + i] * gain[i] + shift[i];
    }
  }
}

function normBackwards({ normed, deviation }, dy, dx, gain, dGain, dShift) {
  for (let t = 0, at = 0; t < deviation.length; t++, at += WIDTH) {
    let [mean, along] = [0, 0];
    for (let i = 0; i < WIDTH; i++) {
      const d = dy[at + i];
      dGain[i] += d * normed[at + i];
      dShift[i] += d;
      mean += (d * gain[i]) / WIDTH;
      along += (d * gain[i] * normed[at + i]) / WIDTH;
    }
    for (let i = 0; i < WIDTH; i++) dx[at + i] += (dy[at + i] * gain[i] - mean - along * normed[at + i]) / deviation[t];
  }
}

/** Rotate rows in place by angles m theta; pairs are adjacent, or `halves` of the row; sign -1 turns back. */
function rotate(x, { cos, sin }, sign = 1, halves = false) {
  const pairs = WIDTH / 2;
  for (let at = 0, i = 0; at < x.length; at += WIDTH) {
    for (let pair = 0; pair < pairs; pair++, i++) {
      const p = at + (halves ? pair : 2 * pair);
      const q = halves ? p + pairs : p + 1;
      const [a, b] = [x[p], x[q]];
      x[p] = a * cos[i] - sign * b * sin[i];
      x[q] = sign * a * sin[i] + b * cos[i];
    }
  }
}

/** T5's bucket of a distance. */
export function bucket(distance, farthest) {
  const exact = BUCKETS / 2;
  if (distance < exact) return distance;
  const part = fround(fround(Math.log(distance / exact)) / Math.log(farthest / exact));
  return Math.min(exact + Math.floor(fround(part * exact)), BUCKETS - 1);
}

// ---- the model -----------------------------------------------------------------------------------

/** The tables of an encoding for texts of a length. */
function tablesOf(how, length) {
  const banks = how.theta?.map((theta) => {
    const angles = Array.from({ length }, (_, m) => theta.map((t) => (how.restart ? m % how.restart : m) * t)).flat();
    const still = theta.every((t) => t === 0);
    return still ? null : { cos: Float64Array.from(angles, Math.cos), sin: Float64Array.from(angles, Math.sin) };
  });
  let waves = null;
  if (how.added === "sinusoidal") {
    waves = new Float64Array(length * WIDTH);
    for (let i = 0; i < waves.length; i++) {
      const angle = Math.floor(i / WIDTH) / 10000 ** ((2 * Math.floor((i % WIDTH) / 2)) / WIDTH);
      waves[i] = i % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }
  const buckets = how.farthest && Uint8Array.from({ length }, (_, m) => bucket(m, how.farthest));
  return { banks: banks ?? [null, null], waves, buckets };
}

/** Room for what is computed of a text of a length: kept for its gradient. */
function roomFor(length, vocabulary) {
  const rows = (width) => new Float64Array(length * width);
  const normed = () => ({ y: rows(WIDTH), normed: rows(WIDTH), deviation: new Float64Array(length) });
  const layer = () => ({
    before: normed(),
    source: rows(WIDTH),
    q: rows(WIDTH),
    k: rows(WIDTH),
    v: rows(WIDTH),
    seen: rows(length),
    mixed: rows(WIDTH),
    after: normed(),
    hidden: rows(HIDDEN),
  });
  return { length, x: rows(WIDTH), layers: [layer(), layer()], last: normed(), logits: rows(vocabulary), spare: [] };
}

/** One model: its encoding, its weights and, where it is trained, their gradients. */
export function makeModel(task, seed, how) {
  const vocabulary = VOCABULARY[task];
  const { all, names, named: w } = initialWeights(task, seed, how);
  const gradients = new Float64Array(all.length);
  const g = named(gradients, names);
  const root = Math.sqrt(WIDTH);
  const sign = how.backwards ? -1 : 1; // of the keys
  const kept = {}; // the room and the tables of each length
  const at = (length) => (kept[length] ??= { room: roomFor(length, vocabulary), tables: tablesOf(how, length) });
  const first = (m, layer) => Math.max(0, m + 1 - (how.local?.[layer] ?? Infinity));
  const end = (m, length) => (how.unmasked ? length : m + 1);
  const fallOf = (layer) => how.slopes?.[layer] ?? 0;

  function attend({ q, k, v, seen, mixed }, layer, length, buckets) {
    const fall = fallOf(layer);
    for (let m = 0; m < length; m++) {
      const [from, to, row, here] = [first(m, layer), end(m, length), m * WIDTH, m * length];
      let most = -Infinity;
      for (let n = from; n < to; n++) {
        let score = 0;
        for (let i = 0, at = n * WIDTH; i < WIDTH; i++) score += q[row + i] * k[at + i];
        score = score / root - fall * Math.abs(m - n);
        if (buckets) score += w.t5[buckets[Math.max(m - n, 0)]];
        seen[here + n] = score;
        if (score > most) most = score;
      }
      let sum = 0;
      for (let n = from; n < to; n++) sum += seen[here + n] = Math.exp(seen[here + n] - most);
      mixed.fill(0, row, row + WIDTH);
      for (let n = from; n < to; n++) {
        seen[here + n] /= sum;
        for (let i = 0, at = n * WIDTH; i < WIDTH; i++) mixed[row + i] += seen[here + n] * v[at + i];
      }
    }
  }

  function attendBackwards({ q, k, v, seen }, layer, length, buckets, dMixed, dq, dk, dv) {
    const d = new Float64Array(length);
    for (let m = 0; m < length; m++) {
      const [from, to, row, here] = [first(m, layer), end(m, length), m * WIDTH, m * length];
      let mean = 0;
      for (let n = from; n < to; n++) {
        const share = seen[here + n];
        let along = 0;
        for (let i = 0, at = n * WIDTH; i < WIDTH; i++) {
          along += dMixed[row + i] * v[at + i];
          dv[at + i] += share * dMixed[row + i];
        }
        d[n] = along;
        mean += share * along;
      }
      for (let n = from; n < to; n++) {
        const score = seen[here + n] * (d[n] - mean);
        if (buckets) g.t5[buckets[Math.max(m - n, 0)]] += score;
        const part = score / root;
        for (let i = 0, at = n * WIDTH; i < WIDTH; i++) {
          dq[row + i] += part * k[at + i];
          dk[at + i] += part * q[row + i];
        }
      }
    }
  }

  /** The logits of a text, in its room; rests after each layer. */
  function* read(tokens) {
    const { length } = tokens;
    const { room, tables } = at(length);
    const { x, layers, last, logits } = room;
    for (let i = 0; i < x.length; i++) {
      x[i] = w.embed[tokens[Math.floor(i / WIDTH)] * WIDTH + (i % WIDTH)] + (tables.waves?.[i] ?? w.learned?.[i] ?? 0);
    }
    for (let i = 0; i < LAYERS; i++) {
      const layer = layers[i];
      const { before, source, q, k, v, mixed, after, hidden } = layer;
      const bank = tables.banks[i];
      norm(before, x, w[`${i}.attention.gain`], w[`${i}.attention.shift`]);
      source.set(before.y);
      if (bank && how.before) rotate(source, bank);
      for (const [part, name, from] of [
        [q, "q", source],
        [k, "k", source],
        [v, "v", before.y],
      ]) {
        part.fill(0);
        forwards(part, from, w[`${i}.${name}`], length, WIDTH, WIDTH);
      }
      if (bank && !how.before) {
        rotate(q, bank);
        rotate(k, bank, sign, how.mixed);
      }
      attend(layer, i, length, tables.buckets);
      forwards(x, mixed, w[`${i}.o`], length, WIDTH, WIDTH);
      yield;
      norm(after, x, w[`${i}.mlp.gain`], w[`${i}.mlp.shift`]);
      for (let t = 0; t < length; t++) hidden.set(w[`${i}.up_bias`], t * HIDDEN);
      forwards(hidden, after.y, w[`${i}.up`], length, WIDTH, HIDDEN);
      for (let j = 0; j < hidden.length; j++) hidden[j] = Math.max(hidden[j], 0);
      for (let j = 0; j < x.length; j++) x[j] += w[`${i}.down_bias`][j % WIDTH];
      forwards(x, hidden, w[`${i}.down`], length, HIDDEN, WIDTH);
    }
    norm(last, x, w["last.gain"], w["last.shift"]);
    logits.fill(0);
    forwards(logits, last.y, w.head, length, WIDTH, vocabulary);
    return room;
  }

  /** Add the gradients of a text that was just read, from those of its logits. */
  function learn(tokens, dLogits) {
    const { length } = tokens;
    const { room, tables } = at(length);
    let used = 0; // arrays of the text before are taken again, in the same order
    const rows = (width = WIDTH) => {
      room.spare[used] ??= new Float64Array(length * width);
      return room.spare[used++].fill(0);
    };
    const dx = rows();
    const dLast = rows();
    backwards(dLogits, room.last.y, w.head, dLast, g.head, length, WIDTH, vocabulary);
    normBackwards(room.last, dLast, dx, w["last.gain"], g["last.gain"], g["last.shift"]);
    for (let i = LAYERS - 1; i >= 0; i--) {
      const layer = room.layers[i];
      const bank = tables.banks[i];
      const down = (name, dy, from, into, n, m) =>
        backwards(dy, from, w[`${i}.${name}`], into, g[`${i}.${name}`], length, n, m);
      const normed = (name, kept, dy) =>
        normBackwards(kept, dy, dx, w[`${i}.${name}.gain`], g[`${i}.${name}.gain`], g[`${i}.${name}.shift`]);
      const dHidden = rows(HIDDEN);
      for (let j = 0; j < dx.length; j++) g[`${i}.down_bias`][j % WIDTH] += dx[j];
      down("down", dx, layer.hidden, dHidden, HIDDEN, WIDTH);
      for (let j = 0; j < dHidden.length; j++) {
        if (layer.hidden[j] === 0) dHidden[j] = 0;
        g[`${i}.up_bias`][j % HIDDEN] += dHidden[j];
      }
      const dAfter = rows();
      down("up", dHidden, layer.after.y, dAfter, WIDTH, HIDDEN);
      normed("mlp", layer.after, dAfter);
      const [dMixed, dq, dk, dv, dSource, dBefore] = [rows(), rows(), rows(), rows(), rows(), rows()];
      down("o", dx, layer.mixed, dMixed, WIDTH, WIDTH);
      attendBackwards(layer, i, length, tables.buckets, dMixed, dq, dk, dv);
      if (bank && !how.before) {
        rotate(dq, bank, -1);
        rotate(dk, bank, -sign, how.mixed);
      }
      down("q", dq, layer.source, dSource, WIDTH, WIDTH);
      down("k", dk, layer.source, dSource, WIDTH, WIDTH);
      if (bank && how.before) rotate(dSource, bank, -1);
      down("v", dv, layer.before.y, dBefore, WIDTH, WIDTH);
      for (let j = 0; j < dBefore.length; j++) dBefore[j] += dSource[j];
      normed("attention", layer.before, dBefore);
    }
    for (let j = 0; j < dx.length; j++) {
      g.embed[tokens[Math.floor(j / WIDTH)] * WIDTH + (j % WIDTH)] += dx[j];
      if (g.learned) g.learned[j] += dx[j];
    }
  }

  return { weights: all, gradients, vocabulary, read, learn };
}

/** The loss of a text in nats, summed, and the gradient of loss / count by its logits. */
function lossOf(logits, targets, vocabulary, count) {
  const d = new Float64Array(logits.length);
  let loss = 0;
  targets.forEach((target, t) => {
    if (target === IGNORE) return;
    const row = logits.subarray(t * vocabulary, (t + 1) * vocabulary);
    const most = row.reduce((a, b) => Math.max(a, b));
    let sum = 0;
    for (const value of row) sum += Math.exp(value - most);
    loss += Math.log(sum) + most - row[target];
    for (let i = 0; i < vocabulary; i++) d[t * vocabulary + i] = Math.exp(row[i] - most) / sum / count;
    d[t * vocabulary + target] -= 1 / count;
  });
  return [loss, d];
}

/** Add the mean attention at distances 0 .. length / 2, of the queries of the second half. */
function watch(into, { length, layers }, share) {
  layers.forEach(({ seen }, i) => {
    for (let m = length / 2; m < length; m++) {
      for (let far = 0; far <= length / 2; far++) into[i][far] += (share * seen[m * length + m - far]) / (length / 2);
    }
  });
}

/** Train a model: rests after each text, and yields { loss, attention } after each step. */
export function* train(model, { task, rate, seed, steps }) {
  const { weights, gradients: g } = model;
  const [m, v] = [new Float64Array(g.length), new Float64Array(g.length)];
  const draw = batches(task, "train", seed, BATCH, WINDOW);
  for (let step = 0; step < steps; step++) {
    const lr = rate * Math.min((step + 1) / WARMUP, 1) * (1 - step / steps);
    const texts = draw();
    const count = texts.reduce((sum, { targets }) => sum + targets.filter((target) => target !== IGNORE).length, 0);
    const attention = Array.from({ length: LAYERS }, () => new Float64Array(WINDOW / 2 + 1));
    let loss = 0;
    g.fill(0);
    for (const { tokens, targets } of texts) {
      const room = yield* model.read(tokens);
      const [sum, d] = lossOf(room.logits, targets, model.vocabulary, count);
      loss += sum / count;
      watch(attention, room, 1 / BATCH);
      model.learn(tokens, d);
      yield;
    }
    const clip = Math.max(1, Math.sqrt(g.reduce((sum, d) => sum + d * d, 0)));
    const [fade, fade2] = [1 - 0.9 ** (step + 1), Math.sqrt(1 - 0.98 ** (step + 1))];
    for (let i = 0; i < g.length; i++) {
      const d = g[i] / clip;
      m[i] += 0.1 * (d - m[i]);
      v[i] += 0.02 * (d * d - v[i]);
      weights[i] -= lr * (0.01 * weights[i] + m[i] / fade / (Math.sqrt(v[i]) / fade2 + 1e-8));
    }
    yield { loss, attention };
  }
}

/** The accuracy at each length of TIMES, as the record counts it; yields the part that is done. */
export function* stretch(model, { task, seed }) {
  const scores = [];
  for (const times of TIMES) {
    const length = times * WINDOW;
    const draw = batches(task, "test", seed, 4, length);
    let [right, asked] = [0, 0];
    for (let done = 0; done < TEXTS[times]; done += 4) {
      for (const { tokens, targets, distance } of draw()) {
        const { logits } = yield* model.read(tokens);
        targets.forEach((target, t) => {
          const counts = task === "copy" ? t >= length - WINDOW : times === 1 || distance[t] >= WINDOW;
          if (target === IGNORE || !counts) return;
          const row = logits.subarray(t * model.vocabulary, (t + 1) * model.vocabulary);
          asked += 1;
          right += row.indexOf(row.reduce((a, b) => Math.max(a, b))) === target;
        });
        yield;
      }
      yield { read: (scores.length + (done + 4) / TEXTS[times]) / TIMES.length };
    }
    scores.push(right / asked);
  }
  return scores;
}

// ---- the service ---------------------------------------------------------------------------------

/** Let others have their turn: a message comes sooner than a timer. */
const turn = () =>
  new Promise((go) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      go();
    };
    port2.postMessage(0);
  });

/** Train and stretch as one is told; see the head of this file. */
export function serve(post) {
  let [model, wanted, training] = [null, null, null];
  let current = null; // the work that goes on

  async function work(action, each) {
    const mine = Symbol("work");
    current = mine;
    let begun = performance.now();
    for (let now = action.next(); ; now = action.next()) {
      if (now.value !== undefined) each(now);
      if (now.done) break;
      if (performance.now() < begun + SLICE) continue;
      await turn();
      if (current !== mine) return;
      begun = performance.now();
    }
    current = null;
  }

  let [step, losses, told] = [0, [], 0];
  function trained({ value: { loss, attention } }) {
    losses.push(loss);
    step += 1;
    if (performance.now() < told + REPORT && step < wanted.steps) return;
    post({ step, losses, attention });
    [losses, told] = [[], performance.now()];
    if (step === wanted.steps) post({ trained: true });
  }

  return ({ start, pause, resume, stretch: far, stop }) => {
    if (start) {
      wanted = start;
      [step, losses, told] = [0, [], 0];
      model = makeModel(wanted.task, wanted.seed, wanted.how);
      training = train(model, wanted);
    }
    if (pause || stop) current = null;
    if (start || resume) work(training, trained);
    if (far) work(stretch(model, wanted), ({ done, value }) => post(done ? { scores: value } : value));
  };
}

// ---- at once, for tests --------------------------------------------------------------------------

/** The losses of some steps, the attention in the last of them and, if they are asked for, the scores. */
export function run(wanted, until, scored = false) {
  const model = makeModel(wanted.task, wanted.seed, wanted.how);
  const [losses, training] = [[], train(model, wanted)];
  let attention = null;
  while (losses.length < until) {
    const { value } = training.next();
    if (!value) continue;
    losses.push(value.loss);
    attention = value.attention;
  }
  const reading = stretch(model, wanted);
  let read = { done: !scored };
  while (!read.done) read = reading.next();
  return { losses, attention: attention?.map((row) => [...row]), scores: read.value };
}
