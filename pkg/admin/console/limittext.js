// Limits in their text form: RATE, burst TOKENS, max_debt TOKENS, budget TOKENS/WINDOW. The API reads it too.
import { amounts } from "./amounts.js";

// limitText returns a limit of the API as text.
export function limitText(name, limit) {
  if (typeof limit === "string") return amounts(name, limit);
  const budgets = Object.entries(limit.budget ?? {}).map(([window, tokens]) => ` budget ${tokens}/${window}`);
  return amounts(name, limit.rate + (limit.burst ? ` burst ${limit.burst}` : "") + (limit.max_debt !== undefined ? ` max_debt ${limit.max_debt}` : "") + budgets.join(""));
}

// linesOf returns limits by name as lines.
export const linesOf = (limits) => Object.entries(limits).map(([name, limit]) => `${name}: ${limitText(name, limit)}`).join("\n");

// parseLines is the inverse of linesOf. It fails with the line that is no limit; the service checks names and
// limits itself.
export function parseLines(text) {
  const limits = {};
  for (const line of text.split("\n").map((l) => l.trim()).filter(Boolean)) {
    const match = /^([^\s:]+)\s*:\s*(\S.*)$/.exec(line);
    if (!match) throw new Error(`“${line}” is no limit: write NAME: RATE, such as rpm: 100/minute burst 150`);
    const [, name, limit] = match;
    if (Object.hasOwn(limits, name)) throw new Error(`the limit ${name} is given twice`);
    limits[name] = limit;
  }
  return limits;
}

// capacityOf returns the capacity of a limit, in tokens.
export const capacityOf = (limit) => limit.burst || parseInt((typeof limit === "string" ? limit : limit.rate).replaceAll("_", ""), 10) || 1;
