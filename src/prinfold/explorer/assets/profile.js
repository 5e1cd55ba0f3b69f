// What lies in data space at the place pointed at, beside a row if one is chosen: as bars, as an image, or as a curve.

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
};

// A line for each column: its name, where the value lies between the least and the most of the rows, and the value.
function barsView(page) {
  const list = element("div", { class: "pf-bars", role: "table", "aria-label": "columns" });
  const lines = page.columns.map((name) => {
    const surface = element("span", { class: "pf-mark" });
    const row = element("span", { class: "pf-mark pf-row-mark", hidden: true });
    const fill = element("span", { class: "pf-fill" });
    const value = element("span", { class: "pf-value", role: "cell" });
    const beside = element("span", { class: "pf-value pf-beside", role: "cell" });
    const track = element("span", { class: "pf-track" }, fill, surface, row);
    list.append(element("div", { class: "pf-line", role: "row" }, element("span", { class: "pf-name", role: "rowheader", title: name }, name), track, value, beside));
    return { surface, row, fill, value, beside };
  });
  const at = (value, j) => {
    const [low, high] = [page.low[j], page.high[j]];
    return Math.min(Math.max(high > low ? (value - low) / (high - low) : 0.5, 0), 1) * 100;
  };
  const show = (y, row) => {
    lines.forEach((line, j) => {
      line.surface.hidden = line.fill.hidden = !y;
      if (y) {
        const zero = at(Math.min(Math.max(0, page.low[j]), page.high[j]), j);
        const end = at(y[j], j);
        line.surface.style.left = `${end}%`;
        line.fill.style.left = `${Math.min(zero, end)}%`;
        line.fill.style.width = `${Math.abs(end - zero)}%`;
      }
      line.value.textContent = y ? rounded(page, j, y[j]) : "";
      const known = row && Number.isFinite(row[j]);
      line.row.hidden = !known;
      if (known) line.row.style.left = `${at(row[j], j)}%`;
      line.beside.textContent = row ? rounded(page, j, row[j]) : "";
    });
  };
  return { root: list, show };
}

function paintImage(canvas, values, shape, low, high) {
  const [rows, columns, channels] = [shape[0], shape[1], shape[2] ?? 1];
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    const level = (channel) => {
      const value = values[i * channels + channel];
      return Number.isFinite(value) ? (255 * (value - low)) / (high - low) : 128;
    };
    image.data.set(channels === 3 ? [level(0), level(1), level(2), 255] : [level(0), level(0), level(0), 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

function imageView(page) {
  const surface = element("canvas", { class: "pf-image", role: "img", "aria-label": "the surface here, as an image" });
  const row = element("canvas", { class: "pf-image", role: "img", "aria-label": "the row chosen, as an image" });
  const figure = (canvas, words) => element("figure", {}, canvas, element("figcaption", {}, words));
  const second = figure(row, "row");
  const root = element("div", { class: "pf-images" }, figure(surface, "surface"), second);
  // The middle 98 per cent of the rows' levels: a few bright pixels would leave the rest dark.
  const [low, high] = page.levels;
  const show = (y, x) => {
    surface.hidden = !y;
    second.hidden = !x;
    if (y) paintImage(surface, y, page.view.shape, low, high);
    if (x) paintImage(row, x, page.view.shape, low, high);
  };
  return { root, show };
}

function curveView(page) {
  const canvas = element("canvas", { class: "pf-curve", role: "img", "aria-label": "the columns as a curve" });
  const root = element("div", {}, canvas);
  const line = (context, xs, ys) => {
    context.beginPath();
    let pen = false;
    ys.forEach((y, i) => {
      if (Number.isFinite(y)) pen ? context.lineTo(xs[i], y) : context.moveTo(xs[i], y);
      pen = Number.isFinite(y);
    });
    context.stroke();
  };
  const show = (y, x) => {
    const [width, height] = [canvas.clientWidth || 300, 220];
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const ink = inkOf(canvas);
    const [low, high] = widened(page.least, page.most);
    const at = page.view.positions;
    const [first, last] = widened(at.reduce((a, b) => Math.min(a, b)), at.reduce((a, b) => Math.max(a, b)));
    // Numbers below stand under the middle of their places, so the last of them needs room to its right.
    const across = (p) => 44 + ((width - 66) * (p - first)) / (last - first);
    const xs = at.map(across);
    const level = (v) => 8 + ((height - 30) * (high - v)) / (high - low);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = ink.soft;
    context.strokeStyle = ink.line;
    context.textAlign = "right";
    for (const t of ticks(low, high, 4)) {
      context.fillText(shown(t), 40, level(t) + 4);
      context.strokeRect(44, level(t), width - 66, 0);
    }
    context.textAlign = "center";
    // Between columns that are counted there is no number.
    const least = at.every(Number.isInteger) ? 1 : 0;
    for (const t of ticks(first, last, 5, least)) context.fillText(shown(t), across(t), height - 6);
    context.lineWidth = 1.5;
    if (x) {
      context.setLineDash([4, 3]);
      context.strokeStyle = ink.row;
      line(context, xs, Array.from(x, level));
      context.setLineDash([]);
    }
    context.lineWidth = 2;
    context.strokeStyle = ink.accent;
    if (y) line(context, xs, Array.from(y, level));
  };
  return { root, show };
}

const VIEWS = { bars: barsView, image: imageView, curve: curveView };

function inkOf(node) {
  const style = getComputedStyle(node);
  const read = (name) => style.getPropertyValue(name).trim();
  const dark = read("--pf-dark") === "1";
  return { back: read("--pf-back"), text: read("--pf-text"), soft: read("--pf-soft"), line: read("--pf-line"), accent: read("--pf-accent"), row: read("--pf-row"), dark };
}
