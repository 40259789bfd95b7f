import { ask, askTop, endText, inNamespace } from "./api.js";
import { byID, entityLink, isPlain, make, mark, nameText, number, replace, show } from "./dom.js";
import { limitText, linesOf, parseLines } from "./limittext.js";

const pageSize = 200; // records of a page of either list
const shownRows = 500; // records that the page shows

let open; // the limits that are edited: path, etag ("" if there are none), and members to keep

// openLimits shows all limits of the store and of the file. parameters may name a level to edit.
export function openLimits(parameters) {
  const list = new List();
  const run = async (fn) => {
    show(byID("edit"));
    byID("changed").textContent = byID("touches").textContent = "";
    byID("decides").replaceChildren();
    try {
      await fn();
    } catch (error) {
      show(byID("edit"), error.status === 412 ? new Error(error.message + " Read the limits again.") : error);
    }
  };
  byID("edit").hidden = true;
  byID("level").onchange = fields;
  byID("read").onclick = () => run(read);
  byID("edit").onsubmit = (event) => { event.preventDefault(); run(() => put(false).then(() => list.read())); };
  byID("check").onclick = () => run(() => put(true));
  byID("drop").onclick = () => run(() => drop().then(() => list.read()));
  byID("edit-close").onclick = () => { byID("edit").hidden = true; };
  byID("new-limits").onclick = () => edit("entity", "", "_default_");
  byID("filter").onsubmit = (event) => event.preventDefault();
  byID("limits-text").oninput = byID("limits-from").onchange = () => list.filter();
  byID("limits-more").onclick = () => list.read(true);
  list.edit = (level, entity, resource) => { edit(level, entity, resource); if (entity || level !== "entity") run(read); };
  list.read();
  if (parameters.get("level")) list.edit(parameters.get("level"), parameters.get("entity") || "", parameters.get("resource") || "");
  return () => { clearTimeout(list.timer); byID("limit-rows").replaceChildren(); byID("edit").hidden = true; };
}

// edit opens the form for the limits of a level.
function edit(level, entity, resource) {
  byID("edit").hidden = false;
  byID("level").value = level;
  byID("limit-entity").value = entity;
  byID("limit-resource").value = resource;
  byID("lines").value = byID("limits-reason").value = "";
  byID("drop").hidden = true;
  open = undefined;
  fields();
  byID("edit").scrollIntoView({ block: "start" });
  byID(level === "entity" && !entity ? "limit-entity" : "lines").focus();
}

// fields shows the fields that a level has.
function fields() {
  const level = byID("level").value;
  byID("limit-entity-label").hidden = level !== "entity";
  byID("limit-resource-label").hidden = level === "system";
  byID("limit-entity").required = level === "entity";
  byID("limit-resource").required = level !== "system";
}

function path() {
  const [entity, resource] = [byID("limit-entity").value, byID("limit-resource").value];
  switch (byID("level").value) {
    case "system": return inNamespace("limits", "system");
    case "resource": return inNamespace("limits", "resources", resource);
    default: return inNamespace("limits", "entities", entity, resource);
  }
}

// read shows the stored limits of a level. Without any, it offers those that decide now as comments of the form. The focus
// moves to them, unless the reader has moved it meanwhile.
async function read() {
  const at = path(), focused = document.activeElement;
  const stored = await ask(at).catch((error) => { if (error.status !== 404) throw error; return undefined; });
  open = { path: at, etag: stored?.etag || "", policy: stored?.on_unavailable, alone: stored?.inherit === false };
  byID("lines").value = stored ? linesOf(stored.limits) : "";
  byID("drop").hidden = !stored;
  const resource = byID("level").value === "system" ? "" : byID("limit-resource").value;
  const decide = await ask(inNamespace("limits", "effective") + "?" + new URLSearchParams({
    ...(byID("level").value === "entity" && { entity: byID("limit-entity").value }), ...(resource && resource !== "_default_" && { resource }),
  })).then((list) => list.items, () => []);
  byID("changed").textContent = stored ? "" : "None are stored here. A limit that you add is an exception; every other one stays as it is below.";
  byID("decides").replaceChildren(...sides({ before: decide, after: decide }));
  if (document.activeElement === focused) byID("lines").focus();
}

// put stores the limits, unless they were changed since they were read.
async function put(dryRun) {
  if (open?.path !== path()) throw new Error("Read the limits of this level first.");
  const headers = open.etag ? { "If-Match": open.etag } : { "If-None-Match": "*" };
  const body = { limits: parseLines(byID("lines").value), ...(open.policy && { on_unavailable: open.policy }), ...(open.alone && { inherit: false }) };
  const done = await ask(`${open.path}?${options(dryRun)}`, { method: "PUT", headers, body });
  await changed(done, dryRun);
}

// drop deletes the limits.
async function drop() {
  if (open?.path !== path() || !open.etag) throw new Error("Read the limits of this level first.");
  const done = await ask(`${open.path}?${options(false)}`, { method: "DELETE", headers: { "If-Match": open.etag } });
  await changed(done, false);
  byID("lines").value = "";
  byID("drop").hidden = true;
}

function options(dryRun) {
  const reason = byID("limits-reason").value.trim();
  return new URLSearchParams({ ...(dryRun && { dryRun }), ...(byID("allow-new").checked && { allowNew: true }), ...(reason && { reason }) });
}

// changed shows the outcome of a change, the limits that decide before and after it, and whom it touches.
async function changed(done, dryRun) {
  if (!dryRun) open.etag = done.after?.etag || "";
  byID("drop").hidden = !open.etag;
  byID("changed").textContent = dryRun ? `They are valid: ${done.result} when you save them.` : `${done.result}: in force on every replica within 5 s.${endText(done)}`;
  if (done.effective) byID("decides").replaceChildren(...sides(done.effective));
  byID("touches").textContent = await touches();
}

// touches says whom limits of the level concern, with the busiest of them.
async function touches() {
  const level = byID("level").value;
  const resource = byID("limit-resource").value;
  if (level === "entity") return `It touches ${nameText(byID("limit-entity").value)}, ${resource === "_default_" ? "for each resource without limits of its own" : `for ${resource}`}.`;
  const of = level === "system" ? {} : resource === "_default_" ? {} : { resource };
  const items = await askTop({ by: "busiest", size: 5, ...of }).catch(() => []);
  const busiest = [...new Set(items.map((row) => nameText(row.entity)))];
  const whom = level === "system" ? "every entity and resource" : `every entity for ${resource}`;
  return `It touches ${whom}, where no more special level has a limit of the same name.` + (busiest.length > 0 ? ` Busiest in the last minute: ${busiest.join(", ")}.` : "");
}

// sides returns a table of the limits that decide before and after a change, with their levels.
function sides({ before, after }) {
  const text = (all) => new Map(all.map((l) => [l.name, `${limitText(l.name, l.limit)}, ${l.source}`]));
  const [old, now] = [text(before), text(after)];
  const names = [...new Set([...old.keys(), ...now.keys()])].sort();
  if (names.length === 0) return [];
  const same = names.every((name) => old.get(name) === now.get(name));
  const row = (name) => {
    const differs = old.get(name) !== now.get(name);
    return make("tr", { class: differs ? "differs" : "" }, make("td", {}, name), make("td", {}, old.get(name) || "none"), ...(same ? [] : [make("td", {}, now.get(name) || "none")]));
  };
  return [make("table", {}, make("thead", {}, make("tr", {}, ...["Limit", same ? "In force" : "Before", ...(same ? [] : ["After"])].map((title) => make("th", {}, title)))), make("tbody", {}, ...names.map(row)))];
}

// List is the table of all limits.
class List {
  constructor() {
    this.stored = { items: [], next: "" };
    this.file = { items: [], next: "" };
    this.turn = 0;
  }

  filter() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.read(), 200);
  }

  // read reads the first page of both lists, or the next.
  async read(more = false) {
    const turn = ++this.turn;
    const from = byID("limits-from").value;
    const text = byID("limits-text").value.trim();
    try {
      const page = (of, path, query) => (more && !of.next ? Promise.resolve({ items: [] })
        : ask(path + "?" + new URLSearchParams({ size: pageSize, ...query, ...(more && { after: of.next }) })));
      const none = { items: [] };
      const [stored, file] = await Promise.all([
        from === "file" ? none : page(this.stored, inNamespace("limits"), {}),
        from === "stored" ? none : page(this.file, inNamespace("limits", "file"), { ...(text && { search: text }) }),
      ]);
      if (turn !== this.turn) return;
      const join = (of, with_) => ({ items: [...(more ? of.items : []), ...with_.items].slice(0, 10 * shownRows), next: with_.next || "" });
      [this.stored, this.file] = [join(this.stored, stored), join(this.file, file)];
      const exact = text && from !== "file" && !more ? await this.ofEntity(text) : [];
      if (turn !== this.turn) return;
      this.render(text, exact);
      show(byID("listed"));
    } catch (error) {
      show(byID("listed"), error);
    }
  }

  // ofEntity reads the limits of an entity that is searched for, which may be on no page yet.
  async ofEntity(text) {
    const found = await ask(inNamespace("search") + "?" + new URLSearchParams({ text, size: 5 })).then((s) => s.items, () => []);
    const ids = [...new Set([text, ...found.map((e) => e.id)])].filter((id) => typeof id === "string");
    const all = await Promise.all(ids.map((entity) => ask(inNamespace("limits") + "?" + new URLSearchParams({ entity, size: 20 })).then((l) => l.items, () => [])));
    return all.flat();
  }

  render(text, exact) {
    const key = (l) => JSON.stringify([l.level || l.place, l.entity, l.resource]);
    const stored = new Map([...this.stored.items, ...exact].map((l) => [key(l), l]));
    const all = [
      ...[...stored.values()].map((l) => ({ ...l, from: "stored" })),
      ...this.file.items.map((l) => ({ ...l, level: l.place, from: "file", masked: new Set(Object.keys(stored.get(key(l))?.limits || {})) })),
    ].filter((l) => !text || [l.name, l.domain, nameText(l.entity), nameText(l.resource), ...Object.keys(l.limits)].some((name) => (name || "").includes(text)));
    all.sort((a, b) => places.indexOf(a.level) - places.indexOf(b.level) || nameText(a.entity).localeCompare(nameText(b.entity)) || nameText(a.resource).localeCompare(nameText(b.resource)));
    const rows = all.slice(0, shownRows).map((l) => this.row(l));
    if (all.length > shownRows) rows.push(make("tr", {}, make("td", { colspan: 9, class: "quiet" }, `${number.format(all.length - shownRows)} more: a search finds them`)));
    replace(byID("limit-rows"), rows, text ? `no limit with “${text}”` + (this.stored.next ? " in the pages that were read" : "") : "there are none");
    const more = this.stored.next || this.file.next;
    byID("limits-more").hidden = !more;
    byID("limits-more").textContent = `More (${number.format(Math.min(all.length, shownRows))} shown)`;
  }

  row(l) {
    const editable = ["system", "resource", "entity"].includes(l.level) && [l.entity, l.resource].every(fits);
    const limits = Object.entries(l.limits).map(([name, limit]) => make("div", { class: l.masked?.has(name) ? "masked" : "" }, make("b", {}, name), " ", limitText(name, limit),
      l.shadow || name.endsWith(".shadow") ? mark("shadow", "", "it denies nothing") : "", l.masked?.has(name) ? mark("masked", "warn", "a stored limit of the same name and level decides") : ""));
    return make("tr", {}, make("td", {}, l.level), make("td", {}, l.entity !== undefined && l.level === "entity" ? entityLink(l.entity) : ofText(l)),
      make("td", {}, l.resource === undefined ? "" : make("bdi", {}, nameText(l.resource))), make("td", {}, ...limits, l.inherit === false ? mark("alone", "warn", "names that it lacks have no limit") : "", l.disabled ? mark("disabled", "bad") : ""),
      make("td", {}, l.from === "file" ? "the file" : "the store"),
      make("td", {}, editable ? make("button", { type: "button", class: "link administer", "aria-label": `${l.from === "file" ? "Override" : "Change"} the limits of ${l.level} ${nameText(l.entity)} ${nameText(l.resource)}`,
        click: () => this.edit(l.level, l.entity ?? "", l.resource ?? "") }, l.from === "file" ? "Override" : "Change") : ""));
  }
}

const places = ["system", "resource", "kind", "plan", "rule", "entity"];

// fits reports whether a field for one line of text keeps a name as it is.
const fits = (name) => name === undefined || name === null || (isPlain(name) && !/[\r\n]/.test(name));

function ofText(l) {
  if (l.level === "rule") return `${l.name} of domain ${l.domain}, entity ${nameText(l.entity)}`;
  return l.name || "";
}
