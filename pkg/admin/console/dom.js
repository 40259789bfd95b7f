// Small helpers for elements. They never read text as HTML.

export const byID = (id) => document.getElementById(id);

// make returns an element with attributes and children, which are elements or texts. Functions are handlers.
export function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e["on" + name] = value;
    else if (value !== undefined && value !== false) e.setAttribute(name, value);
  }
  e.append(...children.filter((child) => child !== undefined && child !== ""));
  return e;
}

// nameText returns the name of an entity or a resource as text. Bytes that are not UTF-8 come
// as an object, and are shown in base64. Long names are cut.
export function nameText(name) {
  if (name === null || name === undefined) return "";
  const text = typeof name === "string" ? name : "base64:" + name.base64;
  return text.length > most ? text.slice(0, most) + "…" : text;
}

const most = 200; // characters of a name that a page shows

// isPlain reports whether a name can be written in a path and a field.
export const isPlain = (name) => typeof name === "string" && name !== "";

// entityLink returns a link to the page of an entity, or its name.
export function entityLink(id) {
  if (!isPlain(id)) return make("bdi", {}, nameText(id));
  return make("a", { href: pageOf("entity", { id }) }, make("bdi", {}, nameText(id)));
}

// pageOf returns the address of a page with its parameters.
export const pageOf = (page, parameters = {}) => `#${page}?${new URLSearchParams(parameters)}`;

// show writes a problem, or nothing, into the element for problems of a part of the page.
export function show(part, error) {
  const at = [...part.querySelectorAll(".problem")].find((e) => e.parentElement.closest(".card, section, dialog, form#login") === part);
  const text = error ? String(error.message || error) : "";
  if (at && at.textContent !== text) at.textContent = text;
}

// replace makes the rows of a list those given. Elements that stay what they are stay in place, so that a list
// that is read again and again loses no click, no focus and no selection.
export function replace(list, rows, none) {
  const empty = list.tagName === "TBODY"
    ? make("tr", {}, make("td", { colspan: 9, class: "quiet" }, none)) : make("li", { class: "quiet" }, none);
  turnInto(list, rows.length > 0 ? rows : [empty]);
}

// turnInto makes the children of an element those given.
function turnInto(element, children) {
  const old = [...element.childNodes];
  children.forEach((child, i) => (i < old.length ? turn(old[i], child) : element.append(child)));
  old.slice(children.length).forEach((child) => child.remove());
}

// turn makes a node another one, or replaces it where they are of other kinds.
function turn(old, node) {
  if (old.isEqualNode(node) && node.nodeType !== Node.ELEMENT_NODE) return;
  if (old.nodeName !== node.nodeName) {
    old.replaceWith(node);
    return;
  }
  if (node.nodeType !== Node.ELEMENT_NODE) {
    old.data = node.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...node.attributes]) if (old.getAttribute(name) !== value && name !== "style") old.setAttribute(name, value);
  old.style.cssText = node.style.cssText;
  [old.onclick, old.onchange] = [node.onclick, node.onchange];
  turnInto(old, [...node.childNodes]);
}

export const number = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });

// mark returns a small label.
export const mark = (text, kind = "", title = undefined) => make("span", { class: "mark " + kind, title }, text);
