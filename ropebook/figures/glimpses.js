// Three small panels for the first page: a model's card, a real head, and a bug to find.
import { figureName, make, setRich } from "./kit/dom.js";
import { followTheme, pairColor } from "./kit/theme.js";

const [WIDTH, HEIGHT, FOOT] = [240, 104, 16]; // of a drawing, and of what stands under its axis
const DECADES = 8; // of wavelengths that a card's drawing shows

/** An SVG drawing of marks, of which the browser's parser makes elements: numbers and this file's own words. */
function drawing(label, ...marks) {
  const node = make("div", { role: "img", "aria-label": label });
  node.innerHTML = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true">${marks.join("")}</svg>`;
  return node;
}

const words = (x, y, said, anchor = "start") => `<text x="${x}" y="${y}" text-anchor="${anchor}">${said}</text>`;

/** Buttons of which one is chosen; chosen(i) is called with its number. */
function chips(label, names, chosen) {
  const nodes = names.map((name) => make("button", { type: "button", className: "rope-button" }, name));
  const press = (i) => {
    for (const [at, node] of nodes.entries()) node.setAttribute("aria-pressed", String(at === i));
    chosen(i);
  };
  for (const [i, node] of nodes.entries()) node.addEventListener("click", () => press(i));
  return { row: make("div", { className: "rope-chips", role: "group", "aria-label": label }, ...nodes), press };
}

/** A panel: what it asks, its control, a drawing and an answer; show(picture, answer) fills the last two. */
function panel(asked, control) {
  const picture = make("div", { className: "rope-glimpse" });
  const answer = make("p", { role: "status" });
  const node = make("section", {}, make("h3", {}, asked), control, picture, answer);
  const show = (drawn, said) => {
    picture.replaceChildren(drawn);
    setRich(answer, said);
  };
  return { node, show };
}

// ---- a model's card -----------------------------------------------------------------------------

/** The pairs that come to no full turn in a text of the model's length. */
const unfinished = ({ waves, length }) => waves.filter((wave) => wave > length).length;

function drawWaves({ waves, length }) {
  const high = HEIGHT - FOOT;
  const yOf = (wave) => high * (1 - Math.log10(wave) / DECADES);
  const step = WIDTH / waves.length;
  const bars = waves.map((wave, i) => {
    const [y, seen] = [yOf(wave), wave > length ? 0.4 : 1];
    const place = `x="${i * step}" y="${y}" width="${0.75 * step}" height="${high - y}"`;
    return `<rect ${place} fill="${pairColor(i, waves.length)}" opacity="${seen}"/>`;
  });
  const limit = `<path class="rope-glimpse-line" d="M0 ${yOf(length)}H${WIDTH}"/>`;
  const said = words(0, yOf(length) - 4, `a full turn in ${length.toLocaleString("en")} tokens`);
  const foot = [words(0, HEIGHT - 2, "fast pairs"), words(WIDTH, HEIGHT - 2, "slow", "end")];
  return drawing("Tokens that each pair takes for a full turn", ...bars, limit, said, ...foot);
}

function card(models, changed) {
  const pick = (i) => {
    const model = models[i];
    const count = `**${unfinished(model)} of ${model.waves.length}** pairs never come round in a full context.`;
    show(drawWaves(model), `${count} ${model.says}.`);
    changed({ model: model.name, unfinished: unfinished(model) });
  };
  const choice = chips(
    "Model",
    models.map(({ name }) => name),
    pick,
  );
  const { node, show } = panel("Which pairs never come round?", choice.row);
  choice.press(0);
  return node;
}

// ---- a real head --------------------------------------------------------------------------------

function head({ tokens, released, changed: without, out }, changed) {
  const pick = (i) => {
    const weights = [released, without][i];
    const line = tokens.map((token, at) => {
      const node = make("span", { className: at === tokens.length - 1 ? "rope-glimpse-asks" : "" }, token.trim());
      node.style.setProperty("--share", `${Math.round(100 * weights[at])}%`);
      return make("span", {}, token.startsWith(" ") ? " " : "", node, at ? "" : " … ");
    });
    const most = weights.indexOf(Math.max(...weights));
    const word = most
      ? `“${tokens[most].trim()}”, the word before`
      : "the first token, where heads look that find nothing";
    const share = Math.round(100 * weights[most]);
    const now = i ? `Without its ${out} fastest pairs` : "With all its pairs";
    show(make("p", { className: "rope-glimpse-text" }, ...line), `${now}, it gives **${share}%** to ${word}.`);
    changed({ without: i === 1, share });
  };
  const choice = chips("Pairs", ["all 32 pairs", `${out} fastest left out`], pick);
  const asks = tokens[tokens.length - 1].trim();
  const { node, show } = panel(`What does “${asks}” read in a real head?`, choice.row);
  choice.press(0);
  return node;
}

// ---- a bug to find ------------------------------------------------------------------------------

function drawScores(healthy, seen) {
  const [low, most] = [Math.min, Math.max].map((end) => end(...healthy, ...seen));
  const yOf = (score) => 2 + ((HEIGHT - FOOT - 4) * (most - score)) / (most - low);
  const path = (scores) => scores.map((y, s) => `${(s * WIDTH) / (scores.length - 1)},${yOf(y)}`).join(" ");
  const curve = (scores, name) => `<polyline points="${path(scores)}" class="${name}"/>`;
  const foot = [words(0, HEIGHT - 2, "score by distance, from position 3,000 on")];
  const label = "Score by distance, as it should be and as this package has it";
  return drawing(label, curve(healthy, "rope-glimpse-right"), curve(seen, "rope-glimpse-seen"), ...foot);
}

function bench(bug, changed) {
  const pick = (i) => {
    const said =
      i === null
        ? "Grey is right, red is what one wrong line makes of it. Choose a name."
        : i === bug.right
          ? `**Yes.** ${bug.why}`
          : "**Not so.** That bug would draw this. Choose again.";
    show(drawScores(bug.healthy, bug.far[i ?? bug.right]), said);
    changed({ guess: i });
  };
  const choice = chips("Bugs", bug.options, pick);
  const { node, show } = panel("Which bug makes a staircase?", choice.row);
  pick(null);
  return node;
}

export default {
  render({ model, el }) {
    const data = model.get("data");
    const root = make("div", { className: "rope-figure rope-glimpses", "data-figure": figureName(model) });
    let values = {};
    const changed = (some) => {
      values = { ...values, ...some };
      root.dataset.values = JSON.stringify(values);
    };
    root.append(card(data.models, changed), head(data.head, changed), bench(data.bug, changed));
    el.append(root);
    return followTheme(root);
  },
};
