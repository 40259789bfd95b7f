// Amounts as people read them: digits in groups, and dollars for the limits of money.
import { number } from "./dom.js";

const dollar = 1_000_000; // tokens

// isMoney reports whether the tokens of a limit are millionths of a dollar, as pkg/money says.
const isMoney = (limit) => /^usd$|[_-]usd$/.test(limit.split(".")[0]);

const dollars = new Intl.NumberFormat("en", { maximumFractionDigits: 9 });

// amount returns tokens of a limit as text.
export function amount(limit, tokens) {
  if (!isMoney(limit)) return number.format(tokens);
  const text = dollars.format(tokens / dollar);
  return (/\.\d$/.test(text) ? text + "0" : text) + " USD";
}

// amounts returns the text of a limit, such as 2000000/month calendar, with its amounts as people read and write
// them. The day of "from 15" and a number in flight are none.
export function amounts(limit, text) {
  const write = (tokens) => (isMoney(limit) && !text.includes(" in flight ") ? amount(limit, Number(tokens)).replaceAll(",", "_") : grouped(tokens));
  return text.replace(/(^|burst |max_debt |budget )(-?\d+(?:\.\d+)?)/g, (all, before, tokens) => before + write(tokens));
}

const grouped = (tokens) => tokens.replace(/^(-?)(\d{5,})/, (all, sign, digits) => sign + digits.replace(/\B(?=(\d{3})+$)/g, "_"));
