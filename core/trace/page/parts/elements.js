// Create elements. Text is always inserted as text, never as HTML.

const PICTURES = find("columns-of-time").namespaceURI;

function find(id) {
  return document.getElementById(id);
}

/** Create an element with attributes (null: omitted) and children; a string child becomes text, null is left out. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(PICTURES, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    const isPlain = name.startsWith("aria-") || typeof value !== "boolean";
    if (value !== null && (isPlain || value)) element.setAttribute(name, isPlain ? value : "");
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** Return the parts of a sentence as children: those with an odd index are numbers and are highlighted. */
function sentence(parts) {
  return parts.map((part, place) => (place % 2 ? make("b", {}, part) : part));
}

function style(element, values) {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(name, value);
  return element;
}

function rows(element, pairs) {
  element.replaceChildren(...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** Create a row of buttons of which one is selected; arrow keys move between them, as in a group of radio buttons. */
function choice(group, titles, chosen, choose) {
  const buttons = titles.map((title, place) =>
    make("button", { type: "button", role: "radio", "aria-checked": place === chosen, tabindex: place === chosen ? 0 : -1 }, title));
  const pick = (place) => {
    buttons.forEach((button, other) => {
      button.setAttribute("aria-checked", other === place);
      button.tabIndex = other === place ? 0 : -1;
    });
    choose(place);
  };
  buttons.forEach((button, place) => button.addEventListener("click", () => pick(place)));
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const place = buttons.indexOf(document.activeElement);
    if (!step || place < 0) return;
    event.preventDefault();
    const next = (place + step + buttons.length) % buttons.length;
    buttons[next].focus();
    pick(next);
  });
  group.replaceChildren(...buttons);
  return (place) => buttons.forEach((button, other) => {
    button.setAttribute("aria-checked", other === place);
    button.tabIndex = other === place ? 0 : -1;
  });
}

function options(select, titles) {
  select.replaceChildren(...Object.entries(titles).map(([value, title]) => make("option", { value }, title)));
}
