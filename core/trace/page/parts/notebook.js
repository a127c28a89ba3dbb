// Inside a notebook: follow its theme, which may differ from the system's.

/** Return whether the page around the frame is dark, by the first background that is not transparent; null if unknown. */
function isSurroundingDark() {
  let element = window.frameElement;
  while (element) {
    const parts = element.ownerDocument.defaultView.getComputedStyle(element).backgroundColor.match(/[\d.]+/g)?.map(Number);
    if (parts && (parts[3] ?? 1) > 0.5) return (299 * parts[0] + 587 * parts[1] + 114 * parts[2]) / 1000 < 128;
    element = element.parentElement;
  }
  return null;
}

function followNotebook() {
  try {
    const outer = window.frameElement?.ownerDocument;
    if (!outer) return;
    const update = () => {
      const dark = isSurroundingDark();
      if (dark !== null) document.documentElement.dataset.theme = dark ? "dark" : "light";
    };
    update();
    const observer = new MutationObserver(update);
    for (const element of [outer.documentElement, outer.body]) observer.observe(element, { attributes: true });
  } catch {
    // The notebook isolates its outputs: the system's theme is used.
  }
}

find("theme").hidden = true;
followNotebook();
