// The map itself: a shaded background, the rows, and what the reader points at. Three layers, each painted only when
// it changes, so that moving the mouse repaints next to nothing.

const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FBF", "#8C8C8C", "#882255", "#8C8C1A", "#17BECF", "#8C564B"];
const SHAPES = ["disc", "square", "up", "diamond", "down"];
// Dark blue to yellow by way of grey: told apart without red and green.
const SEQUENCE = [[0, 32, 77], [55, 76, 108], [108, 110, 114], [155, 146, 116], [208, 184, 94], [255, 234, 70]];
const NO_VALUE = "rgba(140,140,140,0.45)";

function mix(stops, t) {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  return stops[i].map((c, k) => Math.round(c + (at - i) * (stops[i + 1][k] - c)));
}

function quantiles(values, low, high) {
  const kept = Float64Array.from(values).filter(Number.isFinite).sort();
  if (kept.length === 0) return [0, 1];
  const pick = (q) => kept[Math.min(kept.length - 1, Math.max(0, Math.round(q * (kept.length - 1))))];
  const [a, b] = [pick(low), pick(high)];
  return b > a ? [a, b] : [a - 0.5, b + 0.5];
}

function shape(context, kind, x, y, r) {
  if (kind === "square") return context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  if (kind === "disc") {
    context.moveTo(x + r, y);
    return context.arc(x, y, r, 0, 2 * Math.PI);
  }
  const sign = kind === "down" ? -1 : 1;
  context.moveTo(x, y - sign * 1.2 * r);
  context.lineTo(x + 1.1 * r, kind === "diamond" ? y : y + sign * 0.8 * r);
  if (kind === "diamond") context.lineTo(x, y + 1.2 * r);
  context.lineTo(x - 1.1 * r, kind === "diamond" ? y : y + sign * 0.8 * r);
  context.closePath();
}

// Colours of the rows: by class, with a shape for each, or by a number.
function makeColouring(choice) {
  if (choice.index) {
    const styles = choice.names.map((name, i) => ({ name, colour: PALETTE[i % PALETTE.length], shape: SHAPES[i % SHAPES.length] }));
    return { styles, of: (row) => choice.index[row], range: null, name: choice.name };
  }
  if (!choice.values) return { styles: [{ name: "rows", colour: PALETTE[0], shape: "disc" }], of: () => 0, range: null, name: "" };
  const range = quantiles(choice.values, 0.01, 0.99);
  const styles = Array.from({ length: 64 }, (_, i) => ({ colour: `rgb(${mix(SEQUENCE, i / 63).join(",")})`, shape: "disc" }));
  const of = (row) => {
    const value = choice.values[row];
    return Number.isFinite(value) ? Math.min(63, Math.max(0, Math.floor((64 * (value - range[0])) / (range[1] - range[0])))) : -1;
  };
  return { styles, of, range, name: choice.name };
}

// A picture of numbers over the chart, one pixel for each cell; cells without a surface stay clear.
function shadeImage(field, dark) {
  const [rows, columns] = field.shape;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const [low, high] = quantiles(field.value, 0.005, 0.995);
  const stops = dark ? [[24, 28, 36], [92, 102, 118]] : [[247, 248, 250], [150, 160, 174]];
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const value = field.value[(rows - 1 - r) * columns + c];
      const at = 4 * (r * columns + c);
      if (Number.isNaN(value)) continue;
      image.data.set([...mix(stops, (value - low) / (high - low)), 255], at);
    }
  }
  context.putImageData(image, 0, 0);
  return { canvas, range: [low, high] };
}

function paintFrame(context, view, chart, ink) {
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.fillStyle = ink.soft;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  const base = view.height - view.margin.bottom;
  for (const { bounds, name } of chart.frames ?? [{ bounds: chart.bounds, name: "" }]) {
    const [left, top] = view.toPixel([bounds[0], bounds[3]]);
    const [right, bottom] = view.toPixel([bounds[2], bounds[1]]);
    context.strokeRect(left, top, right - left, bottom - top);
    context.fillText(name, (left + right) / 2, Math.min(bottom + 15, base + 14));
  }
  const [x0] = view.toChart([view.margin.left, 0]);
  const [x1] = view.toChart([view.width - view.margin.right, 0]);
  for (const t of chart.frames ? [] : ticks(Math.max(x0, chart.bounds[0]), Math.min(x1, chart.bounds[2]), 6)) context.fillText(shown(t), view.toPixel([t, 0])[0], base + 14);
  context.fillText(chart.labels[0] ?? "", (view.width + view.margin.left) / 2, base + 29);
  if (!chart.labels[1]) return;
  const [, y1] = view.toChart([0, view.margin.top]);
  const [, y0] = view.toChart([0, base]);
  context.textAlign = "right";
  for (const t of ticks(Math.max(y0, chart.bounds[1]), Math.min(y1, chart.bounds[3]), 6)) context.fillText(shown(t), view.margin.left - 6, view.toPixel([0, t])[1] + 4);
  context.save();
  context.translate(11, (view.height - view.margin.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(chart.labels[1], 0, 0);
  context.restore();
}

function paintShade(context, view, chart, shade) {
  const [left, top] = view.toPixel([chart.bounds[0], chart.bounds[3]]);
  const [right, bottom] = view.toPixel([chart.bounds[2], chart.bounds[1]]);
  context.imageSmoothingEnabled = true;
  context.drawImage(shade.canvas, left, top, right - left, bottom - top);
}

// Rows of each style, those without a value first.
function groupsOf(colouring, n) {
  const groups = new Map();
  for (let row = 0; row < n; row++) {
    const style = colouring.of(row);
    if (!groups.has(style)) groups.set(style, []);
    groups.get(style).push(row);
  }
  return [...groups].sort((a, b) => a[0] - b[0]);
}

// Rows in the order of their colours, so that each is chosen once; `small` draws squares, which are far faster.
function paintRows(context, pixels, colouring, selected, small) {
  const n = pixels.length / 2;
  colouring.groups ??= groupsOf(colouring, n);
  const r = small ? 1.5 : n > 4000 ? 2.2 : 3.2;
  for (const faint of selected.size ? [true, false] : [false]) {
    context.globalAlpha = faint ? 0.18 : 0.85;
    for (const [style, rows] of colouring.groups) {
      const { colour, shape: kind } = colouring.styles[style] ?? { colour: NO_VALUE, shape: "disc" };
      const chosen = selected.size ? rows.filter((row) => selected.has(row) !== faint) : rows;
      context.fillStyle = colour;
      if (small) for (const row of chosen) context.fillRect(pixels[2 * row] - r, pixels[2 * row + 1] - r, 2 * r, 2 * r);
      else {
        context.beginPath();
        for (const row of chosen) shape(context, kind, pixels[2 * row], pixels[2 * row + 1], r);
        context.fill();
      }
    }
  }
  context.globalAlpha = 1;
}

function paintPointer(context, view, chart, state, ink, pixels) {
  context.clearRect(0, 0, view.width, view.height);
  if (state.lasso.length > 1) {
    context.beginPath();
    state.lasso.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.fillStyle = "rgba(0,114,178,0.12)";
    context.fill();
    context.strokeStyle = "#0072B2";
    context.stroke();
  }
  if (state.row !== null) {
    const [x, y] = [pixels[2 * state.row], pixels[2 * state.row + 1]];
    context.strokeStyle = ink.text;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, 8, 0, 2 * Math.PI);
    context.stroke();
  }
  if (!state.place) return;
  const [x, y] = view.toPixel(state.place);
  context.strokeStyle = ink.text;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x - 9, y);
  context.lineTo(x + 9, y);
  context.moveTo(x, y - 9);
  context.lineTo(x, y + 9);
  context.stroke();
}
