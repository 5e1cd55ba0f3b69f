// The map itself: a shaded background, the rows, and what the reader points at. Layers are painted only when they
// change, so that moving the mouse repaints next to nothing.

const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FBF", "#8C8C8C", "#882255", "#8C8C1A", "#17BECF", "#8C564B"];
// The same hues on a dark page, lighter where they would sink into it.
const PALETTE_DARK = ["#4DA3DB", "#F0813A", "#21C698", "#E39BC3", "#F0B429", "#8FD0F5", "#A98AE0", "#B4B4B4", "#D4688F", "#C2C24D", "#4FD8E4", "#C08D80"];
const SHAPES = ["disc", "square", "up", "diamond", "down"];
// Dark blue to yellow by way of grey: told apart without red and green.
const SEQUENCE = [[0, 32, 77], [55, 76, 108], [108, 110, 114], [155, 146, 116], [208, 184, 94], [255, 234, 70]];
const SEQUENCE_DARK = [[74, 116, 214], [104, 134, 186], [140, 148, 160], [180, 170, 132], [220, 202, 104], [255, 240, 110]];
// Little of what is shaded to much of it: away from the page, so that high is dark on paper and light on black.
const SHADES = { light: [[238, 241, 245], [190, 198, 209]], dark: [[22, 26, 33], [66, 75, 89]] };
// Cells on either side over which the edge of the shading fades out.
const EDGE = 2;
// Rows that are not selected while others are: fainter, but there.
const FAINT = 0.32;
// Round rows that are coloured by a number: the middle of a scale is as grey as the shading, and its end as pale as a page.
const RIMS = { light: "#3b424c", dark: "#05070a" };
const NO_VALUE = "rgba(140,140,140,0.45)";

function mix(stops, t) {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  return stops[i].map((c, k) => Math.round(c + (at - i) * (stops[i + 1][k] - c)));
}

// Two quantiles between which colours run, and whether values lie below the one and above the other.
function quantiles(values, low, high) {
  const kept = Float64Array.from(values).filter(Number.isFinite).sort();
  if (kept.length === 0) return [0, 1, false, false];
  const pick = (q) => kept[Math.min(kept.length - 1, Math.max(0, Math.round(q * (kept.length - 1))))];
  const [a, b] = [pick(low), pick(high)];
  return b > a ? [a, b, kept[0] < a, kept[kept.length - 1] > b] : [a - 0.5, b + 0.5, kept[0] < a - 0.5, kept[kept.length - 1] > b + 0.5];
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
function makeColouring(choice, dark) {
  const palette = dark ? PALETTE_DARK : PALETTE;
  if (choice.index) {
    const styles = choice.names.map((name, i) => ({ name, colour: palette[i % palette.length], shape: SHAPES[i % SHAPES.length] }));
    return { styles, of: (row) => choice.index[row], range: null, name: choice.name };
  }
  if (!choice.values) return { styles: [{ name: "rows", colour: palette[0], shape: "disc" }], of: () => 0, range: null, name: "" };
  const range = quantiles(choice.values, 0.01, 0.99);
  const stops = dark ? SEQUENCE_DARK : SEQUENCE;
  const styles = Array.from({ length: 64 }, (_, i) => ({ colour: `rgb(${mix(stops, i / 63).join(",")})`, shape: "disc" }));
  const of = (row) => {
    const value = choice.values[row];
    return Number.isFinite(value) ? Math.min(63, Math.max(0, Math.floor((64 * (value - range[0])) / (range[1] - range[0])))) : -1;
  };
  return { styles, of, range, stops, name: choice.name };
}

// Mean of the cells near one, and how many of those that there are hold a number: 1 all, 0 none.
function near(field, row, column) {
  const [rows, columns] = field.shape;
  let [sum, known, all] = [0, 0, 0];
  for (let r = Math.max(row - EDGE, 0); r <= Math.min(row + EDGE, rows - 1); r++) {
    for (let c = Math.max(column - EDGE, 0); c <= Math.min(column + EDGE, columns - 1); c++) {
      const value = field.value[r * columns + c];
      all += 1;
      if (Number.isNaN(value)) continue;
      sum += value;
      known += 1;
    }
  }
  return { mean: sum / known, share: known / all };
}

// A picture of numbers over the chart, one pixel for each cell; cells without a surface stay clear, and edges are soft.
function shadeImage(field, dark) {
  const [rows, columns] = field.shape;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const range = quantiles(field.value, 0.005, 0.995);
  const [low, high] = range;
  const stops = SHADES[dark ? "dark" : "light"];
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const value = field.value[(rows - 1 - r) * columns + c];
      const { mean, share } = near(field, rows - 1 - r, c);
      const alpha = Math.min(Math.max(2 * share - 0.5, 0), 1);
      if (alpha === 0) continue;
      const shown = Number.isNaN(value) ? mean : value;
      image.data.set([...mix(stops, (shown - low) / (high - low)), Math.round(255 * alpha)], 4 * (r * columns + c));
    }
  }
  context.putImageData(image, 0, 0);
  return { canvas, range, stops };
}

// Numbers along an axis; those of an angle that is seen in full at quarter turns.
function axisTicks(low, high, periodic, wanted) {
  if (!periodic || high - low < Math.PI) return ticks(low, high, wanted).map((t) => [t, shown(t).replace("-", "−")]);
  const quarters = ["−π", "−π/2", "0", "π/2", "π"].map((words, i) => [((i - 2) * Math.PI) / 2, words]);
  return quarters.filter(([t]) => t >= low - 1e-9 && t <= high + 1e-9);
}

function paintFrame(context, view, chart, ink) {
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.fillStyle = ink.soft;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  const named = chart.frames?.some((frame) => frame.name);
  // Numbers stand beside the frame, or at the edge where it goes on beyond.
  const base = Math.min(view.height - view.margin.bottom, Math.max(view.toPixel([0, chart.bounds[1]])[1], view.margin.top + 20));
  const side = Math.max(view.margin.left, Math.min(view.toPixel([chart.bounds[0], 0])[0], view.width - 60));
  for (const { bounds, name } of chart.frames ?? [{ bounds: chart.bounds, name: "" }]) {
    const [left, top] = view.toPixel([bounds[0], bounds[3]]);
    const [right, bottom] = view.toPixel([bounds[2], bounds[1]]);
    context.strokeRect(left, top, right - left, bottom - top);
    context.fillText(name, (left + right) / 2, base + 15);
  }
  const [x0] = view.toChart([view.margin.left, 0]);
  const [x1] = view.toChart([view.width - view.margin.right, 0]);
  const across = named ? [] : axisTicks(Math.max(x0, chart.bounds[0]), Math.min(x1, chart.bounds[2]), chart.periodic[0], 6);
  for (const [t, words] of across) context.fillText(words, view.toPixel([t, 0])[0], base + 15);
  context.fillText(chart.labels[0] ?? "", (side + Math.min(view.width, view.toPixel([chart.bounds[2], 0])[0])) / 2, base + 30);
  if (!chart.labels[1]) return;
  const [, y1] = view.toChart([0, view.margin.top]);
  const [, y0] = view.toChart([0, view.height - view.margin.bottom]);
  const up = axisTicks(Math.max(y0, chart.bounds[1]), Math.min(y1, chart.bounds[3]), chart.periodic[1], 6);
  context.textAlign = "right";
  for (const [t, words] of up) context.fillText(words, side - 6, view.toPixel([0, t])[1] + 4);
  context.save();
  context.translate(side - 33, (base + Math.max(view.toPixel([0, chart.bounds[3]])[1], 0)) / 2);
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

// Rows in the order of their colours, so that each is chosen once. `mask` tells the rows that are selected, if any are.
function paintRows(context, pixels, colouring, mask, ink) {
  const n = pixels.length / 2;
  colouring.groups ??= groupsOf(colouring, n);
  for (const faint of mask ? [true, false] : [false]) {
    context.globalAlpha = faint ? FAINT : 0.9;
    for (const [style, rows] of colouring.groups) {
      const { colour, shape: kind } = colouring.styles[style] ?? { colour: NO_VALUE, shape: "disc" };
      context.fillStyle = colour;
      context.beginPath();
      for (const row of rows) if (!mask || (mask[row] === 0) === faint) shape(context, kind, pixels[2 * row], pixels[2 * row + 1], 3.2);
      context.fill();
      if (!colouring.range) continue;
      context.strokeStyle = RIMS[ink.dark ? "dark" : "light"];
      context.lineWidth = 0.8;
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

// Cells of a lattice of points that a shape covers, as steps from its middle.
function stampOf(kind, r) {
  const half = Math.ceil(1.3 * r);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 2 * half + 1;
  const context = canvas.getContext("2d");
  context.beginPath();
  shape(context, kind, half + 0.5, half + 0.5, r);
  context.fill();
  const { data } = context.getImageData(0, 0, canvas.width, canvas.width);
  const found = [];
  for (let i = 0; i < canvas.width ** 2; i++) if (data[4 * i + 3] > 110) found.push([(i % canvas.width) - half, Math.floor(i / canvas.width) - half]);
  return found;
}

// A colour as one little-endian word of a picture.
function wordOf(colour, alpha) {
  const parts = colour[0] === "#" ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)) : colour.match(/[\d.]+/g).map(Number);
  const [r, g, b, a] = [...parts, 1];
  return ((Math.round(255 * alpha * a) << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// Many rows, written straight into the words of a picture off the screen: some ten times as fast as a path.
function stampRows(layer, width, height, ratio, pixels, colouring, mask) {
  const n = pixels.length / 2;
  colouring.groups ??= groupsOf(colouring, n);
  if (layer.width !== width || layer.height !== height) {
    Object.assign(layer, { width, height, canvas: document.createElement("canvas"), stamps: {} });
    [layer.canvas.width, layer.canvas.height] = [width, height];
    layer.context = layer.canvas.getContext("2d");
    layer.image = layer.context.createImageData(width, height);
    layer.words = new Uint32Array(layer.image.data.buffer);
  }
  const { words } = layer;
  words.fill(0);
  const r = (n > 20000 ? 1.4 : 2.3) * ratio;
  if (layer.r !== r) Object.assign(layer, { r, stamps: {} });
  for (const faint of mask ? [true, false] : [false]) {
    for (const [style, rows] of colouring.groups) {
      const { colour, shape: kind } = colouring.styles[style] ?? { colour: NO_VALUE, shape: "disc" };
      const word = wordOf(colour, faint ? FAINT : 0.9);
      layer.stamps[kind] ??= Int32Array.from(stampOf(kind, r), ([dx, dy]) => dy * width + dx);
      const stamp = layer.stamps[kind];
      const margin = Math.ceil(1.3 * r);
      for (let k = 0; k < rows.length; k++) {
        const row = rows[k];
        if (mask && (mask[row] === 0) !== faint) continue;
        const x = Math.floor(pixels[2 * row] * ratio);
        const y = Math.floor(pixels[2 * row + 1] * ratio);
        // One that hangs over the edge of the picture is left out: the frame hides it.
        if (x < margin || x >= width - margin || y < margin || y >= height - margin) continue;
        const at = y * width + x;
        for (let s = 0; s < stamp.length; s++) words[at + stamp[s]] = word;
      }
    }
  }
  layer.context.putImageData(layer.image, 0, 0);
  return layer.canvas;
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
  // With a rim of the page round them, so that they are seen on any colour.
  const outlined = (width) => {
    for (const [colour, wider] of [[ink.back, 2.5], [ink.text, 0]]) {
      context.strokeStyle = colour;
      context.lineWidth = width + wider;
      context.stroke();
    }
  };
  if (state.row !== null) {
    context.beginPath();
    context.arc(pixels[2 * state.row], pixels[2 * state.row + 1], 8, 0, 2 * Math.PI);
    outlined(2);
  }
  if (!state.place) return;
  const [x, y] = view.toPixel(state.place);
  context.beginPath();
  if (chart.line) {
    // Across a curve there is nothing to point at.
    context.moveTo(x, view.toPixel([0, chart.bounds[3]])[1]);
    context.lineTo(x, view.toPixel([0, chart.bounds[1]])[1]);
    return outlined(1);
  }
  context.moveTo(x - 9, y);
  context.lineTo(x + 9, y);
  context.moveTo(x, y - 9);
  context.lineTo(x, y + 9);
  outlined(1);
}
