// Python for the live cells of a page: one worker (live-worker.js), and the steps that wait for it.

export class Python {
  /**
   * `promised`: the versions and bytes of what is loaded. The page is told with
   * { changed(), announced(text), ended(), failed(message) }: something to show has changed, something
   * is to be read out, the names of all cells are gone, there is no Python.
   */
  constructor(promised, address, page) {
    Object.assign(this, { promised, address, page });
    this.state = "absent"; // absent, loading, ready, running, failed
    this.worker = null;
    this.attempt = null; // the loading in progress
    this.progress = ""; // what loading says
    this.share = 0; // how much of it is done
    this.queue = []; // steps that wait
    this.current = null; // the step that runs
  }

  start() {
    if (this.state !== "absent" && this.state !== "failed") return;
    if (location.protocol === "file:") {
      this.fail(
        "This page was opened as a file, and browsers do not let a file start Python. " +
          "Serve the book (make serve) and open it from there, or open the chapter in Jupyter.",
      );
      return;
    }
    this.state = "loading";
    this.showProgress("starting", 0, this.promised.bytes);
    const attempt = Symbol("attempt");
    this.attempt = attempt;
    this.load(attempt).catch((error) => attempt === this.attempt && this.breakOff(error.message));
  }

  async load(attempt) {
    const base = new URL("vendor/python/", this.address).href;
    const answer = await fetch(`${base}contents.json`, { cache: "no-cache" });
    if (!answer.ok) throw new Error(`contents.json: ${answer.status}`);
    const contents = await answer.json();
    if (attempt !== this.attempt) return; // cancelled meanwhile
    this.worker = new Worker(new URL(contents.worker, this.address), { type: "module" });
    this.worker.onmessage = ({ data }) => this.onMessage(data);
    this.worker.onerror = (event) => this.breakOff(event.message || "the worker did not start");
    this.worker.postMessage({ kind: "start", python: { ...contents, base } });
  }

  showProgress(step, loaded, total) {
    this.share = loaded / total;
    if (step === "importing sympy") this.progress = "Importing sympy …";
    else if (loaded >= total) this.progress = "Starting Python …";
    else this.progress = `Loading Python: ${megabytes(loaded)} of ${megabytes(total)} MB`;
    this.page.changed();
  }

  onMessage(message) {
    if (message.kind === "progress") this.showProgress(message.step, message.loaded, message.total);
    else if (message.kind === "failed") this.breakOff(message.message);
    else if (message.kind !== "ready") this.current?.onMessage(message);
    else {
      this.state = "ready";
      Object.assign(document.documentElement.dataset, {
        livePythonSeconds: message.seconds.toFixed(2),
        livePythonBytes: message.loaded,
      });
      if (!this.queue.length) this.page.announced("Python is ready.");
      this.runNext();
    }
  }

  /** Run these steps after those that wait. */
  enqueue(...steps) {
    this.queue.push(...steps);
    this.runNext();
  }

  runNext() {
    if (this.state === "ready" && this.queue.length) {
      this.state = "running";
      this.current = this.queue.shift();
      const { id } = this.current;
      this.current.begin((code, name) => this.worker.postMessage({ kind: "run", id, code, name }));
    }
    this.page.changed();
  }

  /** The current step is done; after an error, those that wait for it are dropped. */
  finish(ok) {
    this.state = "ready";
    this.current = null;
    if (!ok) this.queue.length = 0;
    this.runNext();
  }

  /** End the worker: a running cell stops at once, and all names are gone. */
  terminate(state) {
    this.worker?.terminate();
    this.worker = null;
    this.attempt = null;
    this.state = state;
    this.queue.length = 0;
    this.current = null;
    this.page.ended();
  }

  breakOff(detail) {
    this.fail(
      navigator.onLine === false
        ? "Python could not be loaded: you seem to be offline. Everything else on the page works."
        : `Python could not be loaded, or broke off (${detail}). Press Run to try again.`,
    );
  }

  fail(message) {
    this.terminate("failed");
    this.progress = message;
    this.page.failed(message);
  }
}

export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
