// Small helpers for elements. They never read text as HTML.

export const byID = (id) => document.getElementById(id);

// make returns an element with attributes and children, which are elements or texts.
export function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value);
  }
  e.append(...children);
  return e;
}

// draw returns an element of SVG.
export function draw(tag, attributes = {}, text = "") {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.textContent = text;
  return e;
}

// nameText returns the name of an entity or a resource as text. Bytes that are not UTF-8 come
// as an object, and are shown in base64.
export const nameText = (name) => (name === null || name === undefined ? "" : typeof name === "string" ? name : "base64:" + name.base64);

// isPlain reports whether a name can be written in a path and a field.
export const isPlain = (name) => typeof name === "string" && name !== "";

// show writes a problem, or nothing, into the element for problems of a part of the page.
export function show(part, error) {
  const at = [...part.querySelectorAll(".problem")].find((e) => e.closest("section, form#login, article, dialog") === part);
  const text = error ? String(error.message || error) : "";
  if (at && at.textContent !== text) at.textContent = text;
}

export const number = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
