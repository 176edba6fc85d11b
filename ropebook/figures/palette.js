// The colours of the book, once for both languages: palette.py reads the JSON between the braces.
// Orange is the query's and blue the key's: no table holds them. Each table holds colours at equal
// steps; between two of them, mix linearly in sRGB.
//   pair    fast -> slow: rose to violet, contrast at least 3:1 on white and on the dark page
//   phase   one turn, 0 to 2 pi, cyclic: light = cosine 1, dark = cosine -1, green = first half turn
//   angle   true angle, small -> large
//   cosine  -1 -> 1
// biome-ignore format: a table
export const PALETTE = {
  "pair": [
    "#d42e54", "#d32f60", "#d1306c", "#cf3278", "#cc3483", "#c9378e", "#c53a99", "#c13da3", "#bc40ad",
    "#b744b7", "#b147c0", "#ab4bc8", "#a54fd0", "#9e53d8", "#9657de", "#8e5be4", "#855fe9"
  ],
  "phase": [
    "#e4eae5", "#d3edd9", "#cae9d1", "#b8e2c2", "#9fd9ad", "#7ece94", "#5bbf7b", "#40ac66",
    "#239853", "#008341", "#046f37", "#005c2c", "#024c24", "#01401d", "#023718", "#102f1a",
    "#242825", "#341f37", "#3e1e43", "#47244d", "#552c5c", "#66366e", "#7b4284", "#914e9c",
    "#a75fb2", "#bc73c7", "#cf88d9", "#df9ce9", "#e8b3f0", "#edc6f3", "#f2d4f6", "#f4ddf8"
  ],
  "angle": [
    "#f6f5df", "#e7e9b8", "#d7dd97", "#c3d179", "#afc65c", "#99bb44", "#83af3a", "#749f48", "#66914d",
    "#58824b", "#4a7546", "#3b683f", "#2b5b37", "#194f2f", "#004427", "#0d3523", "#13261e"
  ],
  "cosine": [
    "#2d2230", "#392a3e", "#453448", "#4f4051", "#594c5a", "#635962", "#6d656a", "#787373", "#82807b",
    "#8d8d83", "#989b8c", "#a2a994", "#aeb79d", "#b8c5a6", "#c4d3b1", "#d1e1bf", "#e1edd5"
  ]
};
