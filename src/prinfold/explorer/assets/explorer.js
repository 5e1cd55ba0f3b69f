// The page: a map to move over, what the surface is like there, rows to choose, compare and take away.

const MANY_ROWS = 3000; // from which on they are stamped rather than drawn

const NEAR = 14; // pixels within which a row is meant

// `told` hears of the rows that are selected, whenever they are; `keys` is where Escape is heard, whatever has the focus.
function mount(root, packed, told = () => {}, keys = root) {
  const page = unpack(packed);
  const decode = makeDecoder(page);
  const inDomain = makeDomain(page.latent, page.decoder);
  const choices = choicesOf(page);
  const Q = page.latentRows.shape[1];
  const state = { place: null, z: null, row: null, selected: new Set(), lasso: [], tool: "move", colour: 0, shade: page.field ? "magnification" : "", view: page.view.kind };
  const slice = { axes: [0, 1], rest: page.latent.kind === "box" || page.latent.kind === "region" ? page.latent.low.map((low, a) => (low + page.latent.high[a]) / 2) : [] };
  let chart = makeChart(page.latent, slice);
  const view = makeView(chart);
  let colouring = null;
  let shade = null;
  let places = null;
  let mask = null;
  let ink = null;
  let stale = true; // the words below the map
  const layer = {};
  const pixels = new Float32Array(2 * page.n);
  const dom = build(root, page, choices, state);
  const profile = { view: null };

  function resolved(choice) {
    if (choice.lazy && !choice.values) choice.values = choice.lazy();
    return choice;
  }
  const latentOf = (row) => Array.from(page.latentRows.subarray(row * Q, row * Q + Q));
  const rowOf = (row) => (page.table && row !== null ? page.table.subarray(row * page.columns.length, (row + 1) * page.columns.length) : null);

  function placed() {
    const found = new Float64Array(2 * page.n);
    for (let i = 0; i < page.n; i++) found.set(chart.place(latentOf(i), page.lanes ? page.lanes[i] : 0.5), 2 * i);
    return found;
  }

  // ------------------------------------------------------------------------------------------------ painting

  let waiting = { base: false, pointer: false };
  function repaint(what) {
    const idle = !waiting.base && !waiting.pointer;
    waiting[what] = true;
    if (idle) requestAnimationFrame(paint);
  }
  function paint() {
    ink ??= inkOf(root);
    colouring ??= makeColouring(resolved(choices[state.colour]), ink.dark);
    if (waiting.base) {
      const context = fitted(dom.base);
      context.clearRect(0, 0, view.width, view.height);
      context.save();
      context.beginPath();
      // A little beyond the frame, over which rows at its edge hang.
      context.rect(view.margin.left - 5, 0, view.width - view.margin.left + 5, view.height - view.margin.bottom + 5);
      context.clip();
      if (state.shade && (shade ??= makeShade(ink.dark))) paintShade(context, view, chart, shade);
      const [a, b, c, d] = view.straight();
      places ??= placed();
      for (let i = 0; i < page.n; i++) {
        pixels[2 * i] = a + b * places[2 * i];
        pixels[2 * i + 1] = c + d * places[2 * i + 1];
      }
      if (page.n <= MANY_ROWS) paintRows(context, pixels, colouring, mask, ink);
      else context.drawImage(stampRows(layer, dom.base.width, dom.base.height, window.devicePixelRatio || 1, pixels, colouring, mask), 0, 0, view.width, view.height);
      context.restore();
      paintFrame(context, view, chart, ink);
      if (stale) legend();
      stale = false;
    }
    paintPointer(fitted(dom.pointer), view, chart, state, ink, pixels);
    waiting = { base: false, pointer: false };
  }
  function fitted(canvas) {
    const ratio = window.devicePixelRatio || 1;
    [view.width, view.height] = [dom.map.clientWidth, dom.map.clientHeight];
    const [w, h] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }
  // A column of the surface is evaluated cell by cell, here in the page.
  function makeShade(dark) {
    if (state.shade === "magnification") return page.field ? shadeImage({ shape: page.field.shape, value: page.field }, dark) : null;
    const [columns, rows] = Q === 1 ? [300, 1] : [120, 120];
    const value = new Float64Array(rows * columns).fill(NaN);
    const [x0, y0, x1, y1] = chart.bounds;
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const z = chart.locate([x0 + ((c + 0.5) / columns) * (x1 - x0), y0 + ((r + 0.5) / rows) * (y1 - y0)]);
        if (inDomain(z)) value[r * columns + c] = decode(z)[Number(state.shade)];
      }
    }
    return shadeImage({ shape: [rows, columns], value }, dark);
  }
  function legend() {
    dom.legend.replaceChildren();
    if (colouring.range) {
      dom.legend.append(scale(colouring.name, colouring.range, colouring.stops));
    } else if (colouring.styles.length > 1) {
      colouring.styles.forEach((style) => dom.legend.append(element("span", { class: "pf-key" }, swatch(style), style.name)));
    }
    if (shade && state.shade) {
      const [low, high, ...beyond] = shade.range;
      const ends = state.shade === "magnification" ? [Math.exp(low), Math.exp(high)] : [low, high];
      const words = state.shade === "magnification" ? "magnification factor" : page.columns[Number(state.shade)];
      dom.legend.append(scale(`shading: ${words}`, [...ends, ...beyond], shade.stops));
    }
  }
  // Ends beyond which there are values say so: those take the colour of the end.
  function scale(words, [low, high, below, above], stops) {
    const colours = stops.map((c) => `rgb(${c.join(",")})`).join(",");
    const bar = element("span", { class: "pf-scale", role: "img", "aria-label": "low to high" });
    bar.style.background = `linear-gradient(90deg,${colours})`; // not an attribute, which the page's own policy forbids
    const end = (value) => (value > 0 && low > 0 && high > 4 * low ? shown(Number(value.toPrecision(2))) : inSteps(value, high - low));
    return element("span", { class: "pf-key" }, `${words} `, element("span", { class: "pf-key" }, `${below ? "≤ " : ""}${end(low)}`, bar, `${above ? "≥ " : ""}${end(high)}`));
  }
  function swatch(style) {
    const canvas = element("canvas", { width: 14, height: 14, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    context.fillStyle = style.colour;
    context.beginPath();
    shape(context, style.shape, 7, 7, 4.5);
    context.fill();
    return canvas;
  }

  // ------------------------------------------------------------------------------------------------ pointing

  // What the surface is like at a latent coordinate; the numbers are those of inverse_transform there.
  function probe(z) {
    pointAt(z);
    state.z = z;
    return show();
  }
  function pointAt(z) {
    state.place = chart.place(z, 0.5);
    if (Q === 1 && state.pointerHeight !== undefined) state.place[1] = state.pointerHeight;
    repaint("pointer");
  }
  function show() {
    const y = inDomain(state.z) ? decode(state.z) : null;
    describe(state.z, y);
    profile.view.show(y, rowOf(state.row));
    return y;
  }
  function describe(z, y) {
    const [x0, y0, x1, y1] = chart.bounds;
    const where = z.map((value) => Number(inSteps(value, chart.line ? x1 - x0 : Math.min(x1 - x0, y1 - y0)))).join(", ");
    dom.place.textContent = y ? `${page.word} at (${where})` : `no ${page.word} at (${where})`;
    dom.chosen.textContent = state.row === null ? "" : ` beside row ${rowTitle(page, state.row)}${errorWords()}`;
    dom.extra.textContent = state.row === null ? "" : page.extra.slice(0, 8).map((each) => `${each.name}: ${each.cells[state.row]}`).join(" · ");
    dom.kept.hidden = state.row === null;
    dom.start.hidden = true;
  }
  const errorWords = () => (page.distances ? `, ${shown(page.distances[state.row])} from the surface` : "");
  // A row that was chosen stays beside its own reconstruction until it is let go: moving only names what lies below.
  function choose(row) {
    state.row = row;
    if (row !== null && page.lanes) state.pointerHeight = page.lanes[row];
    if (row !== null) probe(latentOf(row));
    else if (state.place) probe(chart.locate(state.place));
    clearable();
    repaint("pointer");
  }
  // Beyond the map, and where the domain ends within it, there is nothing to evaluate: the last place stays.
  function hover(place) {
    const z = chart.locate(place);
    const [x0, y0, x1, y1] = chart.bounds;
    const seen = place[0] >= x0 && place[0] <= x1 && (chart.line || (place[1] >= y0 && place[1] <= y1));
    if (state.row !== null || !seen || !inDomain(z)) return;
    state.pointerHeight = place[1];
    probe(z);
  }
  function nameBelow(px, py) {
    const row = nearestRow(px, py, NEAR);
    dom.below.hidden = row === null;
    if (row === null) return;
    dom.below.textContent = `${page.rowNames ? "" : "row "}${rowTitle(page, row)}`;
    const [x, y] = [pixels[2 * row], pixels[2 * row + 1]];
    // Towards the middle, so that no edge cuts it off.
    dom.below.style.transform = `translate(${x > view.width / 2 ? "calc(-100% - 9px)" : "9px"}, ${y > view.height / 2 ? "calc(-100% - 9px)" : "9px"})`;
    Object.assign(dom.below.style, { left: `${x}px`, top: `${y}px` });
  }
  function nearestRow(px, py, reach) {
    let best = null;
    let least = reach * reach;
    for (let i = 0; i < page.n; i++) {
      const d = (pixels[2 * i] - px) ** 2 + (pixels[2 * i + 1] - py) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    return best;
  }
  function select(rows) {
    state.selected = new Set(rows);
    dom.count.textContent = `${state.selected.size} of ${page.n} rows selected`;
    dom.export.disabled = state.selected.size === 0;
    clearable();
    mask = state.selected.size ? new Uint8Array(page.n) : null;
    for (const row of state.selected) mask[row] = 1;
    repaint("base");
    const found = [...state.selected].sort((a, b) => a - b);
    dom.selection.replaceChildren(...selectionView(page, found, mask, choose));
    root.classList.toggle("pf-selecting", found.length > 0);
    told(found);
    return found;
  }
  function lasso(line) {
    const found = [];
    const [left, right] = [Math.min(...line.map((p) => p[0])), Math.max(...line.map((p) => p[0]))];
    for (let i = 0; i < page.n; i++) {
      const x = pixels[2 * i];
      if (x >= left && x <= right && within([x, pixels[2 * i + 1]], line)) found.push(i);
    }
    return select(found);
  }
  function find(words) {
    const rows = searchRows(page, words);
    dom.found.hidden = !words.trim();
    const entry = (row) => element("button", { type: "button", onclick: () => found(row) }, rowTitle(page, row));
    dom.found.replaceChildren(...(rows.length ? rows.map(entry) : [element("span", { class: "pf-note" }, "no row has this in its name")]));
    return rows;
  }
  function found(row) {
    dom.found.hidden = true;
    dom.search.value = rowName(page, row);
    choose(row);
  }
  const clearable = () => (dom.clear.disabled = state.selected.size === 0 && state.row === null);
  const clear = () => {
    dom.search.value = "";
    dom.found.hidden = true;
    select([]);
    choose(null);
  };
  const exportCsv = () => csvOf(page, [...state.selected].sort((a, b) => a - b));

  // ------------------------------------------------------------------------------------------------- wiring

  const at = (event) => {
    const box = dom.pointer.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;
  dom.pointer.addEventListener("pointerdown", (event) => {
    dom.pointer.setPointerCapture(event.pointerId);
    dom.below.hidden = true;
    drag = { from: at(event), last: at(event), moved: false };
    state.lasso = state.tool === "lasso" ? [at(event)] : [];
  });
  dom.pointer.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (drag) {
      drag.moved ||= Math.hypot(here[0] - drag.from[0], here[1] - drag.from[1]) > 4;
      if (state.tool === "lasso") state.lasso.push(here);
      else if (drag.moved) {
        view.x += here[0] - drag.last[0];
        view.y += here[1] - drag.last[1];
        repaint("base");
      }
      drag.last = here;
      repaint("pointer");
      return;
    }
    hover(view.toChart(here));
    nameBelow(...here);
  });
  dom.pointer.addEventListener("pointerleave", () => (dom.below.hidden = true));
  dom.pointer.addEventListener("pointerup", (event) => {
    const ended = drag;
    drag = null;
    if (ended && !ended.moved) {
      const row = nearestRow(...at(event), NEAR);
      if (row === null && state.tool === "lasso") select([]);
      choose(row);
    } else if (ended && state.tool === "lasso") lasso(state.lasso);
    state.lasso = [];
    repaint("pointer");
  });
  dom.pointer.addEventListener("pointercancel", () => {
    drag = null;
    state.lasso = [];
    repaint("pointer");
  });
  dom.pointer.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoomAt(...at(event), Math.exp(-0.0015 * event.deltaY));
    repaint("base");
  }, { passive: false });
  const zoom = (factor) => {
    view.zoomAt(view.width / 2, view.height / 2, factor);
    repaint("base");
  };
  const step = (dx, dy) => {
    const [x, y] = view.toPixel(state.place ?? view.toChart([view.width / 2, view.height / 2]));
    const place = view.toChart([x + dx, y + dy]);
    // Round a closed axis, and up to the edge of an open one.
    for (const a of [0, 1]) if (!chart.periodic[a]) place[a] = Math.min(Math.max(place[a], chart.bounds[a]), chart.bounds[a + 2]);
    state.pointerHeight = place[1];
    (state.row === null ? probe : pointAt)(chart.locate(place));
    nameBelow(...view.toPixel(state.place));
  };
  const tool = (name) => {
    state.tool = name;
    for (const [key, button] of Object.entries(dom.tools)) button.setAttribute("aria-pressed", String(key === name));
    dom.map.classList.toggle("pf-lassoing", name === "lasso");
  };
  const KEYS = {
    ArrowLeft: () => step(-8, 0),
    ArrowRight: () => step(8, 0),
    ArrowUp: () => step(0, -8),
    ArrowDown: () => step(0, 8),
    Enter: () => state.place && choose(nearestRow(...view.toPixel(state.place), Infinity)),
    "+": () => zoom(1.4),
    "=": () => zoom(1.4),
    "-": () => zoom(1 / 1.4),
    0: () => (view.reset(), repaint("base")),
    l: () => tool(state.tool === "lasso" ? "move" : "lasso"),
  };
  dom.pointer.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  keys.addEventListener("keydown", (event) => event.key === "Escape" && clear());
  dom.clear.addEventListener("click", clear);
  dom.search.addEventListener("input", () => find(dom.search.value));
  dom.search.addEventListener("keydown", (event) => {
    const rows = event.key === "Enter" ? find(dom.search.value) : [];
    if (rows.length) found(rows[0]);
  });
  dom.tools.move.addEventListener("click", () => tool("move"));
  dom.tools.lasso.addEventListener("click", () => tool("lasso"));
  dom.nearer.addEventListener("click", () => zoom(1.4));
  dom.farther.addEventListener("click", () => zoom(1 / 1.4));
  dom.whole.addEventListener("click", () => KEYS[0]());
  dom.colour.addEventListener("change", () => {
    state.colour = Number(dom.colour.value);
    colouring = null;
    restyled();
  });
  dom.shade.addEventListener("change", () => {
    [state.shade, shade] = [dom.shade.value, null];
    restyled();
  });
  function restyled() {
    stale = true;
    repaint("base");
  }
  // Everything that has a colour of the page.
  function relit() {
    shade = colouring = ink = null;
    restyled();
    looked(state.view);
  }
  dom.look.addEventListener("change", () => looked(dom.look.value));
  dom.theme.addEventListener("click", () => {
    root.dataset.theme = inkOf(root).dark ? "light" : "dark";
    relit();
  });
  dom.export.addEventListener("click", () => {
    const link = element("a", { href: URL.createObjectURL(new Blob([page.decimal === "," ? "\ufeff" : "", exportCsv()], { type: "text/csv" })), download: "selected.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  for (const [name, input] of Object.entries(dom.axes)) input.addEventListener("input", () => sliced(name));
  function sliced() {
    const axes = [Number(dom.axes.x.value), Number(dom.axes.y.value)];
    if (axes[0] === axes[1]) axes[1] = (axes[0] + 1) % page.latent.periodic.length;
    dom.axes.y.value = axes[1];
    Object.entries(dom.axes).forEach(([key, input]) => key.startsWith("at") && (slice.rest[Number(key.slice(2))] = Number(input.value)));
    slice.axes = axes;
    chart = makeChart(page.latent, slice);
    Object.assign(view, { ...makeView(chart), width: view.width, height: view.height });
    shade = places = null;
    stale = true;
    (state.row === null ? probe : pointAt)(middle());
    repaint("base");
  }
  const middle = () => chart.locate([(chart.bounds[0] + chart.bounds[2]) / 2, (chart.bounds[1] + chart.bounds[3]) / 2]);
  // The row nearest to the middle of the rows, by the median of each coordinate.
  function centralRow() {
    places ??= placed();
    const median = (values) => Float64Array.from(values).sort()[values.length >> 1];
    const [x, y] = [0, 1].map((a) => median(places.filter((_, i) => i % 2 === a)));
    const [x0, y0, x1, y1] = chart.bounds;
    const far = (i) => ((places[2 * i] - x) / (x1 - x0)) ** 2 + ((places[2 * i + 1] - y) / (y1 - y0)) ** 2;
    let best = 0;
    for (let i = 1; i < page.n; i++) if (far(i) < far(best)) best = i;
    return best;
  }
  function looked(name) {
    state.view = name;
    profile.view = VIEWS[name](page);
    dom.profile.replaceChildren(profile.view.root);
    if (state.z) show();
  }
  new ResizeObserver(() => {
    dom.map.style.maxHeight = chart.even ? `${Math.max(view.idealHeight(dom.map.clientWidth), 300)}px` : "";
    repaint("base");
  }).observe(dom.map);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", relit);
  looked(state.view);
  tool("move");
  select([]);
  probe(page.n ? latentOf(centralRow()) : middle());
  dom.start.hidden = false;
  const pixelOf = (row) => [pixels[2 * row], pixels[2 * row + 1]];
  const pixelAt = (z) => view.toPixel(chart.place(z, 0.5));
  return { decode: (z) => Array.from(decode(z)), inside: (z) => inDomain(z), probe, choose, select, clear, lasso, nearestRow, exportCsv, pixelOf, pixelAt, state, page };
}
