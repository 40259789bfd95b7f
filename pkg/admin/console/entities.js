import { ask, inNamespace } from "./api.js";
import { watchBalances } from "./balances.js";
import { byID, isPlain, make, nameText, show } from "./dom.js";
import { limitText } from "./limittext.js";
import { watchUsage } from "./usage.js";

const most = 20; // entities that a search shows
const pages = 10; // that a search reads, of 1000 entities each

let stops = []; // functions to call when the entity is closed
let reread = async () => {};

// rereadEntity shows the entity again, after a change.
export const rereadEntity = () => reread();

function stop() {
  stops.forEach((end) => end());
  stops = [];
}

// closeEntity ends the view of an entity.
export function closeEntity() {
  stop();
  byID("entity").hidden = true;
  byID("found").replaceChildren();
  byID("found-about").textContent = "";
}

// search lists the entities with the text in their ID or name. It opens the one with the text as
// its ID. If none is found, it opens that ID too, which need not be stored.
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

// openEntity shows an entity, its limits and balances. An entity that is not stored may have
// balances too. It calls change with limits to change.
export async function openEntity(id, change) {
  stop();
  const part = byID("entity");
  part.hidden = false;
  byID("entity-title").textContent = id;
  byID("entity-facts").replaceChildren();
  byID("entity-limits").replaceChildren();
  show(part);
  const on = () => byID("entity-title").textContent === id && !part.hidden;
  reread = () => read(id, part, on, change);
  await reread();
  if (on()) part.querySelector("h3").focus();
  if (on()) stops = [watchBalances(id, on), watchUsage(id, on)];
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
      Object.entries(l.limits).map(([name, limit]) => `${name} ${limitText(name, limit)}`).join(", ") + " ",
      make("button", { type: "button", class: "link", click: () => change("entity", id, nameText(l.resource)) }, "change")));
    byID("entity-limits").replaceChildren(...(rows.length > 0 ? rows : [make("li", { class: "about" }, "none are stored: those of a rule, a plan, the file, the resource or the system apply")]));
    show(part);
  } catch (error) {
    show(part, error);
  }
}

function facts(entity) {
  if (!entity) return [make("dt", {}, "stored"), make("dd", {}, "no: a parent is one of the file or of a rule")];
  const all = [["name", entity.name], ["parent", nameText(entity.parent)], ["cascade", entity.cascade ? "its parent consumes too" : ""], ["plan", entity.plan],
    ...Object.entries(entity.metadata || {}), ["created", entity.created_at]];
  return all.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]);
}
