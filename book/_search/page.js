// What the page asks of the index. It is loaded, and index.js and texts.js after it, when somebody begins to search.
import { excerpt, find, load } from "./engine.mjs";

const book = { index: null, places: [], kinds: [], texts: [] };

window.bookSearch = {
  /** Take the index, and the address, the page, the title and the kind of each place. */
  fill(index, places) {
    book.index = load(index);
    book.places = places.map(([url, page, title]) => ({ url, page, title }));
    book.kinds = places.map((place) => place[3]);
  },
  /** Take the text of each place. */
  tell(texts) {
    book.texts = texts;
  },
  /** The places that answer a query, best first; `show` is a piece of the text around its words. */
  find(query) {
    return find(book.index, query, book.kinds).map((id) => ({
      ...book.places[id],
      show: () => excerpt(book.texts[id] ?? "", query),
    }));
  },
};
