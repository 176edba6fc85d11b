// The colours of the book, once for both languages: palette.py reads the JSON between the braces.
// Each table holds colours at equal steps; between two neighbours, mix linearly in sRGB.
//   pair    fast -> slow: warm to cool, contrast at least 3:1 on white and on the dark page
//   phase   one turn, 0 to 2 pi, cyclic: light = cosine 1, dark = cosine -1, blue = first half turn
//   angle   true angle, small -> large
//   cosine  -1 -> 1
// biome-ignore format: a table
export const PALETTE = {
  "pair": [
    "#a05b01", "#c63e10", "#cb3b49", "#cb3d67", "#c9407c", "#c6448d", "#c3499b", "#be4da8",
    "#b951b4", "#b456c0", "#ad5bcc", "#a461d7", "#9869e3", "#8972ee", "#6d7ff8", "#3c8ffb",
    "#089cea"
  ],
  "phase": [
    "#eae8e2", "#d3e8ff", "#c9e3fe", "#b7dafe", "#9ecdfe", "#7ebeff", "#5dacf9", "#4598e7",
    "#2d84d3", "#1470bc", "#025ea3", "#004e89", "#014072", "#003561", "#052e52", "#112941",
    "#27262a", "#3c200d", "#491f00", "#542502", "#642e02", "#773802", "#8f4401", "#a95102",
    "#c16218", "#d67734", "#e98c4e", "#f9a068", "#feb68a", "#fec9a9", "#ffd6be", "#ffdecc"
  ],
  "angle": [
    "#f8f4de", "#e6e9b9", "#cde09c", "#aed788", "#87cf7c", "#56c67a", "#0bba80", "#00a887",
    "#049788", "#0a8684", "#09777e", "#066777", "#015870", "#044967", "#033b5f", "#192d47",
    "#1b2130"
  ],
  "cosine": [
    "#25262e", "#2f2f3d", "#38394d", "#40445d", "#484f6d", "#4d5c7d", "#52698c", "#557898",
    "#5987a2", "#6095a9", "#6ba4ad", "#7cb1af", "#91beb1", "#aac8b4", "#c3d2bc", "#dadcca",
    "#ece8dd"
  ]
};
