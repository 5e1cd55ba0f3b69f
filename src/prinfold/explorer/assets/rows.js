// The rows: what they can be coloured by, what they are called, and how they are written to a file.

function choicesOf(page) {
  const found = [];
  if (page.classes) found.push({ name: page.classes.name, index: page.classes.index, names: page.classes.names });
  for (const each of page.values) found.push({ name: each.name, values: each.values });
  if (page.table) {
    const D = page.columns.length;
    page.columns.forEach((name, j) => j !== page.labelColumn && found.push({ name, lazy: () => Float64Array.from({ length: page.n }, (_, i) => page.table[i * D + j]) }));
  }
  if (found.length === 0) found.push({ name: "nothing" });
  return found;
}

// What a file of rows needs: quotes where a field has separators, quotes or line ends; decimal commas go with semicolons.
function csvLine(page, line) {
  const commas = page.decimal === ",";
  const plain = (value) => (commas && NUMBER.test(String(value)) ? String(value).replace(".", ",") : plainText(value));
  const special = commas ? /[";\r\n]/ : /[",\r\n]/;
  const quoted = (text) => (special.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return line.map((value) => quoted(plain(value))).join(commas ? ";" : ",");
}

// A spreadsheet takes text that begins so for a formula and runs it; behind an apostrophe it is text. Numbers stay numbers.
const plainText = (value) => (/^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(String(value)) && !NUMBER.test(String(value)) ? `'${value}` : String(value));
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?Infinity$/i;

function csvOf(page, rows) {
  const Q = page.latentRows.shape[1];
  const D = page.columns.length;
  // Headings of ours give way to those of the table: a file with two of a name would be read wrongly.
  const taken = new Set(page.table ? page.columns : []);
  const free = (name) => {
    const found = taken.has(name) ? free(`${name} (map)`) : name;
    taken.add(found);
    return found;
  };
  // Classes and numbers stand under their own headings already, and so may the names.
  const known = new Set([page.classes?.name, ...page.values.map((v) => v.name)]);
  const extra = page.extra.filter((each) => !known.has(each.name));
  const named = page.rowNames && !extra.some((each) => each.cells.every((cell, i) => cell === page.rowNames[i]));
  const head = ["row", ...(named ? ["name"] : []), ...(page.classes ? [page.classes.name] : []), ...extra.map((each) => each.name), ...page.values.map((v) => v.name)].map(free);
  head.push(...Array.from({ length: Q }, (_, a) => free(`latent ${a + 1}`)), ...(page.table ? page.columns : []));
  const number = (value) => (Number.isNaN(value) ? "" : value);
  const lines = rows.map((i) => [
    page.rowNumbers ? page.rowNumbers[i] : i,
    ...(named ? [page.rowNames[i]] : []),
    ...(page.classes ? [page.classes.names[page.classes.index[i]] ?? ""] : []),
    ...extra.map((each) => each.cells[i]),
    ...page.values.map((v) => number(v.values[i])),
    ...Array.from({ length: Q }, (_, a) => page.latentRows[i * Q + a]),
    ...(page.table ? Array.from({ length: D }, (_, j) => number(page.table[i * D + j])) : []),
  ]);
  return [head, ...lines].map((line) => csvLine(page, line)).join("\r\n") + "\r\n";
}

const rowName = (page, row) => String(page.rowNames ? page.rowNames[row] : page.rowNumbers ? page.rowNumbers[row] : row);

// What a row is called, with its class where it has one.
function rowTitle(page, row) {
  const index = page.classes ? page.classes.index[row] : -1;
  return `${rowName(page, row)}${index >= 0 ? ` (${page.classes.names[index]})` : ""}`;
}
