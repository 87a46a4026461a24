// The colours of the style sheet, for what is drawn on a canvas.

/** Colours that people with any colour vision tell apart; no more lines than these in one chart. */
export const LINES = 8;

let colours = {};

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  colours = {
    lines: Array.from({ length: LINES }, (_, slot) => value(`--line-${slot + 1}`)),
    grid: value("--grid"),
    text: value("--quiet"),
  };
}

export const line = (slot) => colours.lines[slot];
export const grid = () => colours.grid;
export const text = () => colours.text;
