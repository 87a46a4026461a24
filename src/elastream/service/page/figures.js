// Numbers as people read them, with their units. What is unknown is a dash.

export const UNKNOWN = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

const known = (write) => (value) => (value === null || value === undefined ? UNKNOWN : write(value));

export const count = known((value) => whole.format(value));

/** Short enough for an axis or a node: 12.3K. */
export const compact = known((value) => short.format(value));

export const rate = known((value) => `${whole.format(value)}/s`);

export const compactRate = known((value) => `${short.format(value)}/s`);

export const percent = known((value) => `${whole.format(100 * value)} %`);

/** A duration: 12 ms, 1.24 s, 3 min 20 s. */
export const duration = known((seconds) => {
  if (seconds < 0.9995) return `${Number((1000 * seconds).toPrecision(3))} ms`;
  if (seconds < 100) return `${Number(seconds.toPrecision(3))} s`;
  const rounded = Math.round(seconds);
  return `${whole.format(Math.floor(rounded / 60))} min ${rounded % 60} s`;
});

/** The same in one unit, for an axis. */
export const axisDuration = (seconds) => {
  if (seconds === 0) return "0";
  if (seconds < 1) return `${Number((1000 * seconds).toPrecision(3))} ms`;
  return seconds < 600
    ? `${Number(seconds.toPrecision(3))} s`
    : `${Number((seconds / 60).toPrecision(3))} min`;
};

/** When the engine's clock stood at 0, in seconds since 1970; null where its time is virtual. */
let zero = null;

export function setZero(seconds) {
  zero = seconds;
}

/** How far the engine's clock is from whole minutes and hours of the day, in seconds. */
export const clockOffset = () =>
  zero === null ? 0 : (zero - 60 * new Date(1000 * zero).getTimezoneOffset()) % 86_400;

/** A time of the engine's clock: that of the day, or where it is virtual 4:05, 1:04:05. */
export const clock = known((time) => {
  if (zero !== null) return wallTime(zero + time);
  const seconds = Math.round(time);
  const two = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60) % 60;
  const hours = Math.floor(seconds / 3600);
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
});

const ofDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export function wallTime(unixSeconds) {
  return ofDay.format(1000 * unixSeconds);
}
