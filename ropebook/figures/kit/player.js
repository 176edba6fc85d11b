// player.js: what a figure's buttons play, one thing at a time, and what stops it.
import { reducedMotion } from "./theme.js";

const STOPPED = Symbol("stopped");

/**
 * The player of the figure `root` in its `box`: { play, tween, pause, stop }. A play ends when its
 * action does, when another play begins, when the reader takes a control of the box that is not one
 * of `buttons`, or with stop(). ended() is called after it.
 */
export function makePlayer(box, root, buttons, { ended }) {
  let current = null; // the play in progress

  const finish = (which) => {
    if (which !== current || !which) return; // it was stopped before
    current = null;
    document.removeEventListener("pointerdown", interrupt, true);
    document.removeEventListener("keydown", interrupt, true);
    delete root.dataset.playing;
    ended();
  };
  const interrupt = ({ target, key }) => {
    if (key !== "Tab" && box.contains(target) && !buttons.contains(target)) finish(current);
  };

  const play = async (action) => {
    const mine = Symbol("play");
    current = mine;
    document.addEventListener("pointerdown", interrupt, true);
    document.addEventListener("keydown", interrupt, true);
    root.dataset.playing = "true";
    try {
      await action();
    } catch (problem) {
      if (problem !== STOPPED) throw problem;
    } finally {
      finish(mine);
    }
  };

  const frame = (mine) =>
    new Promise((go, refuse) => {
      requestAnimationFrame(() => (mine === current && root.isConnected ? go() : refuse(STOPPED)));
    });

  /** Call step(part) with parts from 0 to 1, slow at both ends; with motion reduced, once with 1. */
  const tween = async (ms, step) => {
    const mine = current;
    const begun = performance.now();
    for (let part = 0; part < 1; ) {
      await frame(mine);
      part = reducedMotion() ? 1 : Math.min((performance.now() - begun) / ms, 1);
      step(part < 0.5 ? 2 * part * part : 1 - 2 * (1 - part) ** 2);
    }
  };

  const pause = async (ms) => {
    const mine = current;
    const until = performance.now() + ms;
    while (performance.now() < until) await frame(mine);
  };

  return { play, tween, pause, stop: () => finish(current) };
}
