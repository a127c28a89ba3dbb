// Sorting of tables and the choice of a theme. Everything else works without a script.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), body = head.closest("table").tBodies[0];
    const place = head.cellIndex, ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const value = row => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const compare = (one, two) => {
      if (one === "" || two === "") return (one === "") - (two === "");  // texts without a value come last
      const numbers = [Number(one), Number(two)];
      const order = numbers.some(Number.isNaN) ? one.localeCompare(two) : numbers[0] - numbers[1];
      return ascending ? order : -order;
    };
    body.append(...[...body.rows].sort((one, two) => compare(value(one), value(two))));
  });
}
for (const button of document.querySelectorAll("#theme button")) {
  button.addEventListener("click", () => {
    const theme = button.dataset.theme;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    for (const other of document.querySelectorAll("#theme button")) other.setAttribute("aria-checked", other === button);
  });
}
