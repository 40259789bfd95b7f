import { ask, askTop, inNamespace } from "./api.js";
import { byID, entityLink, isPlain, make, mark, nameText, number, pageOf, replace, show } from "./dom.js";

const pageSize = 100; // entities

// openEntities shows what a search finds, or all stored entities.
export function openEntities(parameters) {
  const text = parameters.get("text") || "";
  byID("entities-title").textContent = text ? `Entities with “${nameText(text)}”` : "Entities";
  byID("found-about").textContent = "";
  byID("found-more").hidden = true;
  byID("found").replaceChildren();
  let open = true;
  const on = () => open;
  byID("active").hidden = Boolean(text);
  if (text) {
    find(text, on);
  } else {
    list(on);
    listBusiest(on);
  }
  listDisabled(on);
  return () => { open = false; };
}

// find opens the only entity that a text finds, and else lists those found.
async function find(text, on) {
  const part = byID("found").closest(".card");
  try {
    const { items, complete } = await ask(inNamespace("search") + "?" + new URLSearchParams({ text, size: 100 }));
    if (!on()) return;
    const exact = items.find((e) => e.id === text);
    if (exact || (items.length === 1 && isPlain(items[0].id))) {
      location.replace(pageOf("entity", { id: (exact || items[0]).id }));
      return;
    }
    replace(byID("found"), items.map((e) => make("li", {}, entityLink(e.id), e.name ? ` ${e.name} ` : " ",
      e.active ? mark("in use", "good") : "", e.file ? mark("file") : "", e.stored ? mark("stored") : "")), "none");
    byID("found-about").textContent = items.length === 0 ? "No entity that is stored, in the file, or was in use in the last minute has this text in its ID or name."
      : complete ? `${items.length} found.` : `${items.length} found. There may be more: a longer text finds them.`;
    if (items.length === 0) byID("found-about").append(" ", make("a", { href: pageOf("entity", { id: text }) }, "Open this ID"));
    show(part);
  } catch (error) {
    show(part, error);
  }
}

// list shows the stored entities, a page at a time.
async function list(on, after = "") {
  const part = byID("found").closest(".card");
  try {
    const page = await ask(inNamespace("entities") + "?" + new URLSearchParams({ size: pageSize, ...(after && { after }) }));
    if (!on()) return;
    const rows = page.items.map((e) => make("li", {}, entityLink(e.id), e.name ? " " + e.name : "",
      e.parent ? make("span", { class: "quiet" }, " of ", make("bdi", {}, nameText(e.parent))) : "", e.plan ? mark("plan " + e.plan) : "", e.disabled ? mark("disabled", "bad") : ""));
    if (after) byID("found").append(...rows);
    else replace(byID("found"), rows, "None is stored. Entities need not be: rules name them, and the configuration file may have some.");
    byID("found-more").hidden = !page.next;
    byID("found-more").onclick = () => list(on, page.next);
    show(part);
  } catch (error) {
    show(part, error);
  }
}

// listBusiest shows the entities with the most decisions, which need not be stored.
async function listBusiest(on) {
  const part = byID("active");
  try {
    const items = await askTop({ by: "busiest", size: 50 });
    if (!on()) return;
    const all = new Map(); // decisions by the entity's text
    for (const row of items) {
      const key = JSON.stringify(row.entity);
      all.set(key, { entity: row.entity, decisions: Math.max(row.decisions, all.get(key)?.decisions || 0) }); // each limit counts the same call
    }
    replace(byID("busiest"), [...all.values()].map((e) => make("li", {}, entityLink(e.entity), make("span", { class: "quiet" }, ` ${number.format(e.decisions)} decisions`))), "none");
    show(part);
  } catch (error) {
    show(part, error);
  }
}

// listDisabled shows what is disabled, since when, by whom, and why.
async function listDisabled(on) {
  const part = byID("stopped");
  try {
    const { items, next } = await ask(inNamespace("disabled") + "?size=100");
    if (!on()) return;
    part.hidden = items.length === 0;
    const rows = items.map((d) => make("li", {}, d.level === "entity" ? entityLink(d.entity) : `${d.level} ${nameText(d.resource)}`,
      d.since ? make("span", { class: "quiet" }, ` since ${d.since.slice(0, 16).replace("T", " ")}${d.by ? ` by ${d.by}` : ""}${d.reason ? `: ${d.reason}` : ""}`) : ""));
    if (next) rows.push(make("li", { class: "quiet" }, "and more: ratelimit list disabled shows all"));
    replace(byID("disabled"), rows, "nothing");
    show(part);
  } catch (error) {
    part.hidden = false;
    show(part, error);
  }
}
