// Format numbers as core/explain does; tests compare both.

/** Format `value` with that many digits; halves are rounded to even. */
function fixed(value, digits) {
  if (value < 0) return `-${fixed(-value, digits)}`;
  const scaled = value * 10 ** digits;
  const tie = scaled % 1 === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
  return tie && Math.floor(scaled) % 2 === 0 ? (Math.floor(scaled) / 10 ** digits).toFixed(digits) : value.toFixed(digits);
}

/** Shown for a figure that a remote engine does not report. */
const UNTOLD = "–";

/** A probability of 1 that floating-point numbers rounded: other tokens have a little. */
const ROUNDED_TO_ALL = "≈ 100";

/** Write a percentage as the language does: `31 %`, in Chinese `31%`. */
function percentText(number) {
  return tr("{number} %", { number: `${number}` });
}

/** Whether processing left no other token, so that a final probability of 1 is exact. */
function isOnlySurvivor(token) {
  return token.funnel.length > 0 && token.funnel.at(-1)[1] === 1;
}

function percent(share, isExact = false) {
  if (share === null) return UNTOLD;
  const value = share * 100;
  if (value >= 100) return percentText(isExact ? "100" : ROUNDED_TO_ALL);
  if (value <= 0) return percentText("0");
  if (value < 0.001) return percentText("< 0.001");
  if (value >= 99.995) return percentText("> 99.99");
  if (value < 0.0995) return percentText(fixed(value, 3));
  if (value < 0.995 || value > 99) return percentText(fixed(value, 2));
  return value < 9.95 ? percentText(fixed(value, 1)) : percentText(fixed(value, 0));
}

function briefPercent(share, isExact = false) {
  if (share === null) return UNTOLD;
  const value = share * 100;
  if (value >= 100) return percentText(isExact ? "100" : ROUNDED_TO_ALL);
  if (value <= 0) return percentText("0");
  if (value >= 99.95 && value < 100) return percentText("> 99.9");
  if (value > 99 && value < 100) return percentText(fixed(value, 1));
  if (value >= 9.95) return percentText(fixed(value, 0));
  return value >= 0.05 ? percentText(fixed(value, 1)) : percentText("< 0.1");
}

/** Format as .46 for nodes with room for three characters; <.01, >.99 and ≈1 at the ends. */
function treeShare(share) {
  if (share === null) return UNTOLD;
  if (share > 0 && share < 0.005) return "<.01";
  if (share >= 0.995 && share < 1) return ">.99";
  return share >= 1 ? "≈1" : fixed(Math.max(share, 0), 2).replace(/^0/, "");
}

/** Format with a true minus sign; −∞ for a value of null. */
function decimal(value, digits = 2) {
  return value === null ? "−∞" : fixed(value, digits).replace("-", "−");
}

const GROUPED = new Intl.NumberFormat("en-US");

function whole(number) {
  return GROUPED.format(number);
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${fixed(bytes, unit === 0 || bytes >= 100 ? 0 : 1)} ${units[unit]}`;
}

/** Convert a natural log-probability to surprise in bits. */
function bits(log) {
  return log === null ? Infinity : Math.max(0, -log / Math.LN2);
}
