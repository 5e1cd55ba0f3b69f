// Rows that are selected: as a table, and against the rest of the rows; and rows that are looked for by name.

const MOST_LISTED = 200; // rows of the table of the selection
const MOST_COMPARED = 8; // columns of the comparison
const MOST_FOUND = 8; // rows that a search offers

// Columns in which selected rows differ most from the others, with the means of both and their difference in standard
// deviations of all rows; gaps are left out.
function compareRows(page, mask) {
  const D = page.columns.length;
  const found = page.columns.map((name, j) => {
    const sums = [[0, 0], [0, 0]];
    let [middle, squares, known] = [0, 0, 0];
    for (let i = 0; i < page.n; i++) {
      const value = page.table[i * D + j];
      if (!Number.isFinite(value)) continue;
      sums[mask[i]][0] += 1;
      sums[mask[i]][1] += value;
      known += 1;
      const step = value - middle; // Welford's sums
      middle += step / known;
      squares += step * (value - middle);
    }
    const [rest, chosen] = sums.map(([n, sum]) => sum / n);
    const spread = Math.sqrt(squares / known);
    return { name, j, chosen, rest, difference: spread > 0 ? (chosen - rest) / spread : 0 };
  });
  const told = found.filter((each) => Number.isFinite(each.difference) && each.difference !== 0);
  return told.sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference)).slice(0, MOST_COMPARED);
}

// Rows whose name begins with some words, then those that have them anywhere.
function searchRows(page, words) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const [first, later] = [[], []];
  for (let i = 0; i < page.n && first.length < MOST_FOUND; i++) {
    const at = rowName(page, i).toLowerCase().indexOf(wanted);
    if (at === 0) first.push(i);
    else if (at > 0 && later.length < MOST_FOUND) later.push(i);
  }
  return [...first, ...later].sort((a, b) => exact(page, b, wanted) - exact(page, a, wanted)).slice(0, MOST_FOUND);
}
const exact = (page, row, wanted) => Number(rowName(page, row).toLowerCase() === wanted);

// A line for each column that differs: a bar to the left or right of the middle, and the two means.
function comparisonView(page, found) {
  const reach = Math.max(...found.map((each) => Math.abs(each.difference)), 1);
  const lines = found.map(({ name, j, chosen, rest, difference }) => {
    const bar = element("span", { class: "pf-fill" });
    const width = (50 * Math.abs(difference)) / reach;
    Object.assign(bar.style, { left: `${difference < 0 ? 50 - width : 50}%`, width: `${width}%` });
    const title = `${difference > 0 ? "+" : "−"}${Math.abs(difference).toFixed(1)} SD`;
    return element(
      "div",
      { class: "pf-line", role: "row" },
      element("span", { class: "pf-name", role: "rowheader" }, name),
      element("span", { class: "pf-track pf-both", title, role: "cell", "aria-label": title }, bar),
      element("span", { class: "pf-value", role: "cell" }, rounded(page, j, chosen)),
      element("span", { class: "pf-value pf-rest", role: "cell" }, rounded(page, j, rest)),
    );
  });
  const head = element("div", { class: "pf-line pf-head", role: "row" }, ...["column", "difference in SD", "selected", "rest"].map((words) => element("span", { role: "columnheader" }, words)));
  return element("div", { class: "pf-bars pf-comparison", role: "table", "aria-label": "selected rows against the rest" }, head, ...lines);
}

// The selected rows as a table; a click on one shows it on the map.
function rowsView(page, rows, columns, choose) {
  const shownColumns = columns.slice(0, 4);
  const head = ["row", ...(page.classes ? [page.classes.name] : []), ...shownColumns.map((each) => each.name)];
  const D = page.columns.length;
  const line = (row) => {
    const button = element("button", { type: "button", class: "pf-link" }, rowName(page, row));
    button.addEventListener("click", () => choose(row));
    const cells = [button, ...(page.classes ? [page.classes.names[page.classes.index[row]] ?? "–"] : [])];
    cells.push(...shownColumns.map(({ j }) => rounded(page, j, page.table[row * D + j])));
    return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
  };
  const table = element(
    "table",
    { class: "pf-table" },
    element("thead", {}, element("tr", {}, ...head.map((words) => element("th", { scope: "col" }, words)))),
    element("tbody", {}, ...rows.slice(0, MOST_LISTED).map(line)),
  );
  const more = rows.length > MOST_LISTED ? element("p", { class: "pf-note" }, `The first ${MOST_LISTED} of ${rows.length}; Export CSV has them all.`) : "";
  return element("div", {}, element("div", { class: "pf-scroll" }, table), more);
}

// Everything about a selection, or how to make one.
function selectionView(page, rows, mask, choose) {
  if (!rows.length) return [element("p", { class: "pf-note" }, "Draw round rows with the Lasso: they are listed here, with the columns in which they differ most from the rest.")];
  const found = page.table && rows.length < page.n ? compareRows(page, mask) : [];
  const columns = found.length ? found : page.table ? page.columns.map((name, j) => ({ name, j })) : [];
  const parts = [element("h2", {}, rows.length === 1 ? "1 row selected" : `${rows.length} rows selected`)];
  if (found.length) parts.push(element("p", { class: "pf-note" }, "Columns that differ most from the other rows (means):"), comparisonView(page, found));
  return [...parts, rowsView(page, rows, columns, choose)];
}
