import { ask, every, inNamespace } from "./api.js";
import { Chart } from "./chart.js";
import { byID, isPlain, make, nameText, number, show } from "./dom.js";
import { limitText } from "./limittext.js";

const most = 20; // entities that a search shows
const pages = 10; // that a search reads, of 1000 entities each
const span = 120_000; // ms

let stop = () => {};
let reread = async () => {};

// rereadEntity shows the entity as it is now, after a change.
export const rereadEntity = () => reread();

// closeEntity ends the view of an entity.
export function closeEntity() {
  stop();
  byID("entity").hidden = true;
  byID("found").replaceChildren();
  byID("found-about").textContent = "";
}

// search lists the entities whose ID or name has a part of text. It opens the one with that
// ID, which need not be stored where none is found.
export async function search(text, change) {
  const part = byID("entities");
  const found = [];
  let next = "";
  show(part);
  byID("found-about").textContent = "searching";
  try {
    for (let i = 0; i < pages && found.length < most && (i === 0 || next); i++) {
      const page = await ask(inNamespace("entities") + "?" + new URLSearchParams({ size: 1000, ...(next && { after: next }) }));
      found.push(...page.items.filter((e) => nameText(e.id).includes(text) || (e.name || "").includes(text)));
      next = page.next;
    }
  } catch (error) {
    show(part, error);
  }
  const shown = found.slice(0, most);
  byID("found").replaceChildren(...shown.map((e) => make("li", {}, isPlain(e.id)
    ? make("button", { type: "button", class: "link", click: () => openEntity(e.id, change) }, e.id) : nameText(e.id), e.name ? " " + e.name : "")));
  byID("found-about").textContent = about(shown.length, found.length > most || Boolean(next), text);
  if (found.length === 0 || found.some((e) => e.id === text)) await openEntity(text, change);
}

function about(shown, more, text) {
  if (shown === 0) return `no stored entity has “${text}” in its ID or name` + (more ? ", of the first 10,000" : "");
  return more ? `the first ${shown}; there may be more` : `${shown} found`;
}

// openEntity shows an entity, its limits and balances. One that is not stored may have
// balances too. change is called with limits to change.
export async function openEntity(id, change) {
  stop();
  const part = byID("entity");
  part.hidden = false;
  byID("entity-title").textContent = id;
  byID("entity-facts").replaceChildren();
  byID("entity-limits").replaceChildren();
  byID("balances").replaceChildren();
  show(part);
  const on = () => byID("entity-title").textContent === id && !part.hidden;
  reread = () => read(id, part, on, change);
  await reread();
  if (on()) part.querySelector("h3").focus();
  watchBalances(id, on);
}

// read shows the record and the limits of an entity.
async function read(id, part, on, change) {
  if (!on()) return;
  try {
    const [entity, limits] = await Promise.all([
      ask(inNamespace("entities", id)).catch((error) => { if (error.status === 404) return undefined; throw error; }),
      ask(inNamespace("limits") + "?" + new URLSearchParams({ entity: id })),
    ]);
    if (!on()) return;
    byID("entity-facts").replaceChildren(...facts(entity));
    const rows = limits.items.map((l) => make("li", {}, `for ${nameText(l.resource)}: `,
      Object.entries(l.limits).map(([name, limit]) => `${name} ${limitText(limit)}`).join(", ") + " ",
      make("button", { type: "button", class: "link", click: () => change("entity", id, nameText(l.resource)) }, "change")));
    byID("entity-limits").replaceChildren(...(rows.length > 0 ? rows : [make("li", { class: "about" }, "none: those of the resource or of the system apply")]));
    show(part);
  } catch (error) {
    show(part, error);
  }
}

function facts(entity) {
  if (!entity) return [make("dt", {}, "stored"), make("dd", {}, "no: it has no parent")];
  const all = [["name", entity.name], ["parent", nameText(entity.parent)], ["cascade", entity.cascade ? "its parent consumes too" : ""],
    ...Object.entries(entity.metadata || {}), ["created", entity.created_at]];
  return all.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]);
}

// watchBalances draws the balance of each limit of each bucket of an entity, each second.
function watchBalances(id, on) {
  const part = byID("bucket");
  show(part);
  const lines = new Map(); // by bucket and limit
  stop = every(1000, on, async () => {
    try {
      const answer = await ask(inNamespace("buckets") + "?" + new URLSearchParams({ entity: id, size: 20 }));
      if (on()) render(lines, answer.items, Date.now());
      show(part);
    } catch (error) {
      show(part, error);
      if (error.status === 501) stop(); // the store of this service cannot
    }
  });
}

function render(lines, buckets, now) {
  for (const bucket of buckets) {
    for (const limit of bucket.limits) {
      if (limit.available === undefined) continue;
      const key = JSON.stringify([bucket.resource, bucket.variant, limit.name]);
      if (!lines.has(key)) lines.set(key, newLine(bucket, limit));
      const line = lines.get(key);
      line.points.push({ time: now, value: limit.available });
      while (now - line.points[0].time > span) line.points.shift();
      line.value.textContent = number.format(limit.available);
      line.of.textContent = ` of ${limitText(limit.limit)}`;
      line.chart.render([{ class: limit.available < 0 ? "s1" : "s2", points: line.points }], now, 0, capacityOf(limit.limit));
    }
  }
  if (lines.size === 0) byID("balances").replaceChildren(make("p", { class: "about" }, "no bucket in use: each one is full"));
}

function newLine(bucket, limit) {
  const value = make("strong");
  const of = make("span");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Balance of ${limit.name} for ${nameText(bucket.resource)} in the last two minutes`);
  if (byID("balances").querySelector("p.about")) byID("balances").replaceChildren();
  byID("balances").append(make("div", { "data-limit": limit.name },
    make("p", { class: "legend" }, make("span", {}, `${nameText(bucket.resource)} ${limit.name} `, value, of)), svg));
  return { value, of, points: [], chart: new Chart(svg, span) };
}

// capacityOf returns the most tokens that a limit holds.
const capacityOf = (limit) => limit.burst || parseInt(typeof limit === "string" ? limit : limit.rate, 10) || 1;
