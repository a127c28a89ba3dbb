// Texts in the language of the page: the scripts contain English, the translations are stored with the run.

/** Return the translated sentence with its {placeholders} filled from `values`. */
function tr(text, values = {}) {
  return filled(data.said[text] ?? text, values);
}

/** Return the singular or plural form; its {n} is the number. */
function trn(one, many, n) {
  const text = n === 1 ? one : many;
  return filled(data.said[text] ?? text, { n: whole(n) });
}

/** Like `tr`, with elements as values: return a list of texts and elements. */
function trAround(text, elements) {
  return (data.said[text] ?? text).split(/\{(\w+)\}/).map((part, place) => (place % 2 ? elements[part] : part));
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}
