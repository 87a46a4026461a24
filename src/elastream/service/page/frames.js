// Drawing at most a few times per second, however fast the news comes.

/** Returns a function that asks for `draw` to be run soon; several requests make one run. */
export function calmly(draw, gap = 200) {
  let waiting = false;
  let last = -Infinity;
  return () => {
    if (waiting) return;
    waiting = true;
    const run = () =>
      requestAnimationFrame((now) => {
        waiting = false;
        last = now;
        draw();
      });
    const left = gap - (performance.now() - last);
    if (left > 0) setTimeout(run, left);
    else run();
  };
}

/** Tells whether an element can be seen; `appeared` runs whenever it comes into sight. */
export function inSight(target, appeared) {
  let seen = true;
  new IntersectionObserver(
    (entries) => {
      const before = seen;
      seen = entries.at(-1).isIntersecting;
      if (seen && !before) appeared();
    },
    { rootMargin: "100px" },
  ).observe(target);
  return () => seen;
}
