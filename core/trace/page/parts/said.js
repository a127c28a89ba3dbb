// Words in the language of the page: English stands in the scripts, what it is said as lies with the run.

/** The sentence with its {places} filled; `values` by their names. */
function tr(text, values = {}) {
  return filled(run.said[text] ?? text, values);
}

/** The form for so many; its {n} is the number. */
function trn(one, many, n) {
  const text = n === 1 ? one : many;
  return filled(run.said[text] ?? text, { n: whole(n) });
}

/** The same with elements at its places: a list of texts and elements. */
function trAround(text, elements) {
  return (run.said[text] ?? text).split(/\{(\w+)\}/).map((part, place) => (place % 2 ? elements[part] : part));
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}
