// Rows that are selected: as a table, and against the rest of the rows; and rows that are looked for by name.

const MOST_LISTED = 200; // rows of the table of the selection
const MOST_COMPARED = 8; // columns of the comparison
const MOST_FOUND = 8; // rows that a search offers

// What there is a number of for each row: what was given to colour by, first, and the columns that were fitted.
function measuredOf(page) {
  const D = page.columns.length;
  const given = page.values.slice(0, page.given).map(({ name, values }) => ({ name, given: true, at: (i) => values[i], words: inScale(values) }));
  const fitted = page.table ? page.columns.map((name, j) => ({ name, given: false, at: (i) => page.table[i * D + j], words: (value) => rounded(page, j, value) })) : [];
  return [...given, ...fitted.filter(({ name }) => !given.some((each) => each.name === name))];
}

// How numbers of a list are written: by their extent, and whole ones whole.
function inScale(values) {
  const known = Array.from(values).filter(Number.isFinite);
  const [low, high] = known.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const whole = known.every(Number.isInteger);
  return (value) => (whole && Number.isInteger(value) ? shown(value) : inSteps(value, high - low));
}

// Columns in which selected rows differ most from the others, with the means of both and their difference in standard
// deviations of all rows; gaps are left out. What was given to colour by stays first, however little it differs.
function compareRows(page, columns, mask) {
  const found = columns.map((column) => {
    const sums = [[0, 0], [0, 0]];
    let [middle, squares, known] = [0, 0, 0];
    for (let i = 0; i < page.n; i++) {
      const value = column.at(i);
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
    return { ...column, chosen, rest, difference: spread > 0 ? (chosen - rest) / spread : 0 };
  });
  const told = found.filter((each) => Number.isFinite(each.difference) && (each.given || each.difference !== 0));
  return told.sort((a, b) => b.given - a.given || Math.abs(b.difference) - Math.abs(a.difference)).slice(0, MOST_COMPARED);
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
function comparisonView(found) {
  const reach = Math.max(...found.map((each) => Math.abs(each.difference)), 1);
  const lines = found.map(({ name, words, chosen, rest, difference }) => {
    const bar = element("span", { class: "pf-fill" });
    const width = (50 * Math.abs(difference)) / reach;
    Object.assign(bar.style, { left: `${difference < 0 ? 50 - width : 50}%`, width: `${width}%` });
    const title = `${difference > 0 ? "+" : "−"}${Math.abs(difference).toFixed(1)} SD`;
    return element(
      "div",
      { class: "pf-line", role: "row" },
      element("span", { class: "pf-name", role: "rowheader" }, name),
      element("span", { class: "pf-track pf-both", title, role: "cell", "aria-label": title }, bar),
      element("span", { class: "pf-value", role: "cell" }, words(chosen)),
      element("span", { class: "pf-value pf-rest", role: "cell" }, words(rest)),
    );
  });
  const head = element("div", { class: "pf-line pf-head", role: "row" }, ...["column", "difference in SD", "selected", "rest"].map((words) => element("span", { role: "columnheader" }, words)));
  return element("div", { class: "pf-bars pf-comparison", role: "table", "aria-label": "selected rows against the rest" }, head, ...lines);
}

// The selected rows as a table; a click on one shows it on the map.
function rowsView(page, rows, columns, choose) {
  const shownColumns = columns.slice(0, 4);
  const head = ["row", ...(page.classes ? [page.classes.name] : []), ...shownColumns.map((each) => each.name)];
  const line = (row) => {
    const button = element("button", { type: "button", class: "pf-link" }, rowName(page, row));
    button.addEventListener("click", () => choose(row));
    const cells = [button, ...(page.classes ? [page.classes.names[page.classes.index[row]] ?? "–"] : [])];
    cells.push(...shownColumns.map(({ at, words }) => words(at(row))));
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
  const measured = measuredOf(page);
  const found = rows.length < page.n ? compareRows(page, measured, mask) : [];
  const columns = found.length ? found : measured;
  const parts = [element("h2", {}, rows.length === 1 ? "1 row selected" : `${rows.length} rows selected`)];
  if (found.length) parts.push(element("p", { class: "pf-note" }, "Columns that differ most from the other rows (means):"), comparisonView(found));
  return [...parts, rowsView(page, rows, columns, choose)];
}
