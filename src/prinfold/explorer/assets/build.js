// The parts of the page and their words.

function build(root, page, choices, state) {
  const option = (value, words, chosen) => element("option", { value, selected: chosen }, words);
  const button = (words, title) => element("button", { type: "button", title }, words);
  const dom = {
    colour: element("select", {}, ...choices.map((choice, i) => option(i, choice.name, i === 0))),
    shade: element("select", {}, option("", "nothing", !state.shade)),
    look: element("select", {}, ...page.view.offered.map((name) => option(name, name, name === state.view))),
    tools: { move: button("Move", "drag to move the map, click a row to choose it"), lasso: button("Lasso", "draw a line round rows to select them (key L)") },
    nearer: button("+", "nearer (key +)"),
    farther: button("−", "farther (key −)"),
    whole: button("Reset view", "show the whole map again (key 0)"),
    search: element("input", { type: "search", placeholder: "row name", "aria-label": "Find a row by name", autocomplete: "off" }),
    found: element("div", { class: "pf-found", hidden: true }),
    selection: element("section", { class: "pf-side pf-selection", "aria-label": "selected rows" }),
    export: button("Export CSV", "save the selected rows as a CSV file"),
    clear: button("Clear", "let go of the selected rows and of the row chosen (key Esc)"),
    theme: button("◐", "light or dark"),
    count: element("span", { class: "pf-count", "aria-live": "polite" }, `0 of ${page.n} rows selected`),
    base: element("canvas", { "aria-hidden": "true" }),
    pointer: element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": "latent map: arrow keys move over it, Enter chooses the nearest row, plus and minus zoom, L toggles the lasso, Escape clears",
    }),
    below: element("span", { class: "pf-below", "aria-live": "polite", hidden: true }),
    legend: element("div", { class: "pf-legend" }),
    place: element("span", { "aria-live": "polite" }),
    chosen: element("span", {}),
    kept: element("span", { class: "pf-note", hidden: true }, " (stays until Esc or another click)"),
    extra: element("p", { class: "pf-note pf-extra" }),
    start: element("p", { class: "pf-start" }, page.n ? `Move over the map to see what the ${page.word} is like there; click a row to see it beside its reconstruction.` : `Move over the map to see what the ${page.word} is like there.`),
    profile: element("div", { class: "pf-profile" }),
    axes: {},
  };
  if (page.field) dom.shade.append(option("magnification", "magnification factor", state.shade === "magnification"));
  page.columns.forEach((name, j) => dom.shade.append(option(j, name)));
  dom.map = element("div", { class: "pf-map" }, dom.base, dom.below, dom.pointer);
  const labelled = (words, control) => element("label", {}, `${words} `, control);
  const bar = element("div", { class: "pf-bar", role: "toolbar", "aria-label": "map" });
  bar.append(labelled("Colour by", dom.colour), labelled("Shade by", dom.shade), dom.tools.move, dom.tools.lasso);
  bar.append(dom.nearer, dom.farther, dom.whole);
  if (page.n) bar.append(element("span", { class: "pf-search" }, labelled("Find", dom.search), dom.found), dom.export, dom.clear, dom.count);
  dom.count.style.minWidth = `${2 * String(page.n).length + 18}ch`; // so that a selection does not move the map
  const rows = [bar];
  if (page.latent.periodic && page.latent.periodic.length > 2) rows.push(axesBar(page, dom, option, labelled));
  const words = element("div", {}, element("h1", {}, page.title), element("p", { class: "pf-about" }, page.about));
  const side = element("section", { class: "pf-side", "aria-label": "data space" });
  const heading = element("p", { class: "pf-place" }, dom.place, dom.chosen, dom.kept);
  const hint = element("p", { class: "pf-note pf-hint" }, page.n ? "Move over the map · click a row · drag with Lasso to select · Esc clears" : "Move over the map · drag to shift it · wheel to zoom");
  side.append(dom.start, heading, dom.extra, page.view.offered.length > 1 ? labelled("Show as", dom.look) : "", dom.profile);
  root.classList.add("pf");
  root.replaceChildren(element("header", {}, words, dom.theme), ...rows, element("main", {}, element("section", { class: "pf-left", "aria-label": "latent map" }, dom.map, hint, dom.legend), element("div", { class: "pf-right" }, side, page.n ? dom.selection : "")));
  for (const note of page.notes) root.append(element("p", { class: "pf-note" }, note));
  return dom;
}

// Which two of many axes are shown, and where the others are held.
function axesBar(page, dom, option, labelled) {
  const axes = page.latent.periodic.map((_, a) => a);
  const bar = element("div", { class: "pf-bar" });
  for (const [key, chosen] of [["x", 0], ["y", 1]]) {
    dom.axes[key] = element("select", {}, ...axes.map((a) => option(a, axisName(page.latent, a), a === chosen)));
    bar.append(labelled(key === "x" ? "Across" : "Up", dom.axes[key]));
  }
  for (const a of axes) {
    const middle = (page.latent.low[a] + page.latent.high[a]) / 2;
    dom.axes[`at${a}`] = element("input", { type: "range", min: page.latent.low[a], max: page.latent.high[a], step: "any", value: middle });
    bar.append(labelled(`${axisName(page.latent, a)} at`, dom.axes[`at${a}`]));
  }
  return bar;
}
