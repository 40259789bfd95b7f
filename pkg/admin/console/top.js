import { amount } from "./amounts.js";
import { ask, every } from "./api.js";
import { byID, isPlain, make, nameText, number, show } from "./dom.js";

// watchTop shows the entities with the most decisions, until the function that it returns is
// called. open is called with an entity that a person chooses.
export function watchTop(open) {
  const part = byID("top");
  const read = async () => {
    const by = part.querySelector("input[name=by]:checked").value;
    try {
      const query = new URLSearchParams({ by, size: 10, namespace: byID("namespace").value || "default" });
      const answer = await ask("/v1/top?" + query);
      render(answer.items, open);
      show(part);
    } catch (error) {
      show(part, error);
    }
  };
  part.onchange = read;
  return every(2000, () => true, read);
}

function render(items, open) {
  const focused = document.activeElement?.closest("#top-rows") ? document.activeElement.dataset.entity : undefined;
  const rows = items.map((row) => {
    const entity = nameText(row.entity);
    const chosen = isPlain(row.entity) ? make("button", { type: "button", class: "link", "data-entity": entity, click: () => open(entity) }, entity) : entity;
    return make("tr", {}, make("td", {}, chosen), make("td", {}, nameText(row.resource)), make("td", {}, row.limit),
      make("td", { class: "number" }, number.format(row.decisions)), make("td", { class: "number" }, amount(row.limit, row.tokens)));
  });
  if (rows.length === 0) rows.push(make("tr", {}, make("td", { colspan: 5, class: "about" }, "none in the last minute")));
  byID("top-rows").replaceChildren(...rows);
  if (focused !== undefined) [...byID("top-rows").querySelectorAll("button")].find((b) => b.dataset.entity === focused)?.focus();
}
