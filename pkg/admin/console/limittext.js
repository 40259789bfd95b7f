// Limits in their text form: RATE, burst TOKENS, max_debt TOKENS, budget TOKENS/WINDOW.

// limitText returns a limit of the API as text.
export function limitText(limit) {
  if (typeof limit === "string") return limit;
  const budgets = Object.entries(limit.budget ?? {}).map(([window, tokens]) => ` budget ${tokens}/${window}`);
  return limit.rate + (limit.burst ? ` burst ${limit.burst}` : "") + (limit.max_debt !== undefined ? ` max_debt ${limit.max_debt}` : "") + budgets.join("");
}

// linesOf returns limits by name as lines.
export const linesOf = (limits) => Object.entries(limits).map(([name, limit]) => `${name}: ${limitText(limit)}`).join("\n");

// parseLines is the inverse of linesOf. It fails with the line that is no limit; the service
// checks rates and names itself.
export function parseLines(text) {
  const limits = {};
  for (const line of text.split("\n").map((l) => l.trim()).filter(Boolean)) {
    const match = /^([^\s:]+)\s*:\s*(\S+)((?:\s+(?:(?:burst|max_debt)\s+\d+|budget\s+\d+\/(?:hour|day|month)))*)$/.exec(line);
    if (!match) throw new Error(`“${line}” is no limit: write NAME: RATE, such as rpm: 100/minute burst 150`);
    const [, name, rate, more] = match;
    if (Object.hasOwn(limits, name)) throw new Error(`the limit ${name} is given twice`);
    const words = more.trim().split(/\s+/).filter(Boolean);
    const limit = { rate };
    for (let i = 0; i < words.length; i += 2) {
      const [tokens, window] = words[i + 1].split("/");
      if (window) limit.budget = { ...limit.budget, [window]: Number(tokens) };
      else limit[words[i]] = Number(tokens);
    }
    limits[name] = words.length > 0 ? limit : rate;
  }
  return limits;
}
