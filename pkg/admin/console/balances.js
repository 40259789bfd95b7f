import { amount } from "./amounts.js";
import { ask, every, inNamespace } from "./api.js";
import { byID, isPlain, make, mark, nameText, pageOf, replace, show } from "./dom.js";
import { capacityOf, limitText } from "./limittext.js";

const most = 20; // buckets, and resources
const shadow = ".shadow"; // ends the name of a limit that is tried beside another
const verbs = ["top-up", "set", "reset"];
const names = { "top-up": "Top up", set: "Set", reset: "Reset" };

// watchBalances shows the limits in force of an entity with what is left of each, every second, until the function
// that it returns is called. adjust opens the dialog of a verb.
export function watchBalances(id, on, adjust) {
  const part = byID("balances");
  let decided = { at: 0, limits: new Map() };
  const stop = every(1500, on, async () => {
    try {
      const { items, next } = await ask(inNamespace("buckets") + "?" + new URLSearchParams({ entity: id, size: most }));
      if (Date.now() - decided.at > 10_000) decided = { at: Date.now(), limits: await readDecided(id, items) };
      const budgets = await readBudgets(id);
      if (!on()) return;
      const rows = rowsOf(id, items, decided.limits, budgets);
      byID("balances-about").textContent = next ? `of the first ${most} buckets` : "";
      replace(byID("balance-rows"), rows.map((row) => rowElement(row, adjust)), "no limit is known for it");
      show(part);
    } catch (error) {
      show(part, error);
    }
  });
  return stop;
}

// readDecided returns the limits that decide for each resource of the entity: those of its buckets, of its own
// limits, and any other.
async function readDecided(id, buckets) {
  const own = await ask(inNamespace("limits") + "?" + new URLSearchParams({ entity: id, size: most })).then((list) => list.items, () => []);
  const resources = [...new Set([...buckets.map((b) => b.resource), ...own.map((l) => l.resource)])].filter((r) => isPlain(r) && r !== "_default_").slice(0, most);
  const all = await Promise.all([...resources, ""].map((resource) => ask(inNamespace("limits", "effective") + "?" + new URLSearchParams({ entity: id, ...(resource && { resource }) }))
    .then((list) => [resource, list.items], () => [resource, []])));
  return new Map(all);
}

let budgetsRead = { at: 0 };

// readBudgets returns use and budget of this month and this day by resource and limit. It asks every ten seconds.
async function readBudgets(id) {
  const of = JSON.stringify([byID("namespace").value, id]);
  if (budgetsRead.of === of && Date.now() - budgetsRead.at < 10_000) return budgetsRead.all;
  const all = new Map();
  for (const window of ["hour", "day", "month"]) {
    const query = new URLSearchParams({ entity: id, window, from: beginOf(window), size: 100, budgets: true });
    const { items } = await ask(inNamespace("usage") + "?" + query).catch(() => ({ items: [] }));
    for (const item of items) {
      for (const [limit, budget] of Object.entries(item.budget || {})) all.set(JSON.stringify([item.resource, limit]), { window, budget, used: item.used[limit] || 0 });
    }
  }
  budgetsRead = { of, at: Date.now(), all };
  return all;
}

function beginOf(window) {
  const now = new Date().toISOString();
  return { hour: now.slice(0, 13) + ":00:00Z", day: now.slice(0, 10) + "T00:00:00Z", month: now.slice(0, 7) + "-01T00:00:00Z" }[window];
}

// rowsOf joins limits that decide with the buckets that are in use: a quota with that of the present window. A bucket
// of a plan or a rule has rows of its own. They stand for a limit of that name that is not in use.
function rowsOf(id, all, decided, budgets) {
  const rows = [];
  const shown = new Set(); // limits of buckets that have a row
  const buckets = all.filter((b) => !b.window || Date.parse(b.window.start) <= Date.now());
  const holds = (b, resource, name) => b.resource === resource && b.limits.some((l) => l.name === name);
  const quotas = buckets.filter((b) => b.window && !b.source && Date.now() < Date.parse(b.window.end));
  const others = buckets.filter((b) => b.source && !b.shadow);
  const ordinary = new Map(buckets.filter((b) => !b.variant && !b.window).map((b) => [b.resource, b]));
  const tried = new Map(buckets.filter((b) => b.shadow && !b.source).map((b) => [b.resource, b])); // beside the ordinary ones
  for (const [resource, limits] of decided) {
    for (const l of limits) {
      const base = l.name.endsWith(shadow) ? l.name.slice(0, -shadow.length) : l.name;
      const plain = (l.name === base ? ordinary : tried).get(resource);
      const quota = quotas.find((b) => !b.shadow === (l.name === base) && holds(b, resource, base));
      const bucket = plain && holds(plain, resource, base) ? plain : quota || plain;
      const at = bucket?.limits.find((each) => each.name === base || each.name === l.name);
      if (at) shown.add(at);
      else if (others.some((b) => holds(b, resource, l.name))) continue;
      rows.push({ id, resource, bucket, limit: { name: l.name, held: at?.name, limit: l.limit }, source: l.source, available: at?.available, budget: budgets.get(JSON.stringify([resource, l.name])) });
    }
  }
  for (const bucket of buckets) {
    if ([ordinary, tried].some((of) => of.get(bucket.resource) === bucket) && decided.get(bucket.resource)?.length > 0) continue;
    for (const limit of bucket.limits.filter((l) => !shown.has(l))) {
      rows.push({ id, resource: bucket.resource, bucket, limit, source: bucket.source || (bucket.window ? "quota" : "a bucket in use"), available: limit.available, shadow: bucket.shadow, budget: budgets.get(JSON.stringify([bucket.resource, limit.name])) });
    }
  }
  return rows.sort((a, b) => (a.resource === "") - (b.resource === "") || nameText(a.resource).localeCompare(nameText(b.resource)) || a.limit.name.localeCompare(b.limit.name));
}

function rowElement(row, adjust) {
  const { resource, bucket, limit, source, available } = row;
  return make("tr", { "data-limit": limit.name, "data-resource": nameText(resource) },
    make("td", {}, resource === "" ? make("span", { class: "quiet" }, "any other") : make("bdi", {}, nameText(resource))),
    make("td", {}, limit.name, row.shadow || limit.name.endsWith(shadow) ? mark("shadow", "", "it denies nothing") : ""),
    make("td", {}, balance(limit, available, bucket, resource)), make("td", {}, limitText(limit.name, limit.limit)), make("td", { class: "quiet" }, source),
    make("td", {}, budget(limit.name, row.budget)),
    make("td", { class: "verbs" }, ...verbsOf(row, adjust)));
}

// balance shows what is left as a bar of the capacity. A bucket that is not in use is full.
function balance(limit, available, bucket, resource) {
  if (limit.limit === "unlimited" || limit.limit.rate === "unlimited") return "no limit";
  const capacity = capacityOf(limit.limit);
  if (available === undefined) return resource === "" || bucket ? make("span", { class: "quiet" }, resource === "" ? "" : "–") : make("span", { class: "quiet" }, "not in use: full");
  const part = Math.max(0, Math.min(1, available / capacity));
  return bar(part, amount(limit.name, available), part < 0.1 ? "bad" : part < 0.3 ? "warn" : "good", `${amount(limit.name, available)} of ${amount(limit.name, capacity)}`);
}

// budget shows the use of a window as a bar of its budget.
function budget(name, of) {
  if (!of) return "";
  const part = of.used / of.budget;
  const text = `${amount(name, of.used)} of ${amount(name, of.budget)} this ${of.window}`;
  return bar(Math.min(1, part), text, part >= 1 ? "bad" : part >= 0.8 ? "warn" : "good", text);
}

// bar returns a bar with a text.
export function bar(part, text, kind, title) {
  const fill = make("span", { class: "fill " + kind });
  fill.style.width = `${(part * 100).toFixed(1)}%`;
  return make("span", { class: "gauge", title }, make("span", { class: "track", "aria-hidden": "true" }, fill), make("span", { class: "value" }, text));
}

function verbsOf({ id, resource, bucket, limit, source, available }, adjust) {
  const all = [];
  if (bucket && available !== undefined) {
    all.push(...verbs.map((verb) => make("button", { type: "button", class: "link operate", "data-verb": verb, "aria-label": `${names[verb]} ${limit.name} for ${nameText(resource)}`,
      click: () => adjust(verb, bucket, limit, amount(limit.name, available)) }, names[verb])));
  }
  if ((!bucket?.variant || bucket.window) && !source.startsWith("rule") && !source.startsWith("plan")) {
    all.push(make("a", { class: "administer", "aria-label": `Change ${limit.name} for ${resource === "" ? "any other resource" : nameText(resource)}`,
      href: pageOf("limits", { level: "entity", entity: id, resource: isPlain(resource) ? resource : "_default_" }) }, "Change"));
  }
  return all;
}
