// Where latent coordinates go on paper, and back: a plane, a strip, Lambert's cylinder, or a slice of a larger space.

const wrapped = (angle) => angle - 2 * Math.PI * Math.floor((angle + Math.PI) / (2 * Math.PI));

function widened(low, high) {
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

// A chart has bounds on paper, `place(z, lane)` and `locate(point)`; `even` tells that both axes have one unit.
function makeChart(latent, slice) {
  if (latent.kind === "sphere") {
    return {
      bounds: [-Math.PI, -1, Math.PI, 1],
      periodic: [true, false],
      even: true,
      labels: latent.labels,
      place: (z) => [Math.atan2(z[1], z[0]), z[2]],
      locate: ([x, y]) => {
        const height = Math.min(Math.max(y, -1), 1);
        const radius = Math.sqrt(1 - height * height);
        return [radius * Math.cos(x), radius * Math.sin(x), height];
      },
    };
  }
  if (latent.kind === "charts") return sideBySide(latent);
  if (latent.periodic.length === 1) {
    const [low, high] = latent.kind === "branches" ? widened(latent.low[0], latent.high.at(-1)) : widened(latent.low[0], latent.high[0]);
    return {
      bounds: [low, 0, high, 1],
      periodic: [latent.periodic[0], false],
      even: false,
      line: true,
      frames: latent.kind === "branches" ? Array.from(latent.low, (from, b) => ({ bounds: [from, 0, latent.high[b], 1], name: "" })) : null,
      labels: [latent.labels[0], ""],
      place: (z, lane) => [latent.periodic[0] ? wrapped(z[0]) : z[0], lane ?? 0.5],
      locate: ([x]) => [x],
    };
  }
  const [a, b] = slice.axes;
  const [x0, x1] = widened(latent.low[a], latent.high[a]);
  const [y0, y1] = widened(latent.low[b], latent.high[b]);
  const turned = (value, axis) => (latent.periodic[axis] ? wrapped(value) : value);
  return {
    bounds: [x0, y0, x1, y1],
    periodic: [latent.periodic[a], latent.periodic[b]],
    even: latent.periodic[a] === latent.periodic[b] || latent.kind !== "box",
    labels: [axisName(latent, a), axisName(latent, b)],
    place: (z) => [turned(z[a], a), turned(z[b], b)],
    locate: ([x, y]) => {
      const z = Array.from(slice.rest);
      [z[a], z[b]] = [x, y];
      return z;
    },
  };
}

const axisName = (latent, axis) => latent.labels[axis] ?? `latent ${axis + 1}`;

// Several charts beside each other, each two units wide with a gap between.
function sideBySide(latent) {
  const parts = latent.parts.map((part) => makeChart(part, { axes: [0, 1], rest: [0, 0] }));
  const gap = 0.3;
  const left = [];
  let at = 0;
  for (const part of parts) {
    left.push(at - part.bounds[0]);
    at += part.bounds[2] - part.bounds[0] + gap;
  }
  const index = (x) => {
    let best = 0;
    parts.forEach((part, j) => {
      if (x >= part.bounds[0] + left[j] - gap / 2) best = j;
    });
    return best;
  };
  return {
    bounds: [0, Math.min(...parts.map((p) => p.bounds[1])), at - gap, Math.max(...parts.map((p) => p.bounds[3]))],
    periodic: [false, false],
    even: parts.every((part) => part.even),
    labels: ["", parts[0].labels[1]],
    frames: parts.map((part, j) => ({ bounds: [part.bounds[0] + left[j], part.bounds[1], part.bounds[2] + left[j], part.bounds[3]], name: `map ${j}` })),
    place: (z, lane) => {
      const j = Math.min(Math.max(Math.round(z[0]), 0), parts.length - 1);
      const [x, y] = parts[j].place(z.slice(1), lane);
      return [x + left[j], y];
    },
    locate: ([x, y]) => {
      const j = index(x);
      return [j, ...parts[j].locate([x - left[j], y])];
    },
  };
}

// Between chart and pixels: the whole chart with a margin, magnified and moved by the reader.
function makeView(chart) {
  const view = { zoom: 1, x: 0, y: 0, width: 1, height: 1, margin: { left: 44, right: 12, top: 12, bottom: 34 } };
  const span = [chart.bounds[2] - chart.bounds[0], chart.bounds[3] - chart.bounds[1]];
  const middle = [(chart.bounds[0] + chart.bounds[2]) / 2, (chart.bounds[1] + chart.bounds[3]) / 2];
  const units = () => {
    const w = Math.max(view.width - view.margin.left - view.margin.right, 10);
    const h = Math.max(view.height - view.margin.top - view.margin.bottom, 10);
    const [sx, sy] = [w / span[0], h / span[1]];
    return chart.even ? [Math.min(sx, sy), Math.min(sx, sy)] : [sx, sy];
  };
  const center = () => [
    (view.width + view.margin.left - view.margin.right) / 2,
    (view.height + view.margin.top - view.margin.bottom) / 2,
  ];
  // What a chart needs whose axes have one unit, if it is to fill the width.
  view.idealHeight = (width) => view.margin.top + view.margin.bottom + ((width - view.margin.left - view.margin.right) * span[1]) / span[0];
  // Pixels are a + b·x and c + d·y.
  view.straight = () => {
    const [sx, sy] = units().map((each) => each * view.zoom);
    const [cx, cy] = center();
    return [cx + view.x - middle[0] * sx, sx, cy + view.y + middle[1] * sy, -sy];
  };
  view.toPixel = ([x, y]) => {
    const [a, b, c, d] = view.straight();
    return [a + b * x, c + d * y];
  };
  view.toChart = ([px, py]) => {
    const [a, b, c, d] = view.straight();
    return [(px - a) / b, (py - c) / d];
  };
  // Magnifies about a pixel, which stays where it is.
  view.zoomAt = (px, py, factor) => {
    const zoom = Math.min(Math.max(view.zoom * factor, 0.5), 400);
    const [cx, cy] = center();
    const ratio = zoom / view.zoom;
    view.x = px - cx - (px - cx - view.x) * ratio;
    view.y = py - cy - (py - cy - view.y) * ratio;
    view.zoom = zoom;
  };
  view.reset = () => Object.assign(view, { zoom: 1, x: 0, y: 0 });
  return view;
}

// Round numbers between two ends.
function ticks(low, high, wanted, least = 0) {
  const raw = Math.max((high - low) / Math.max(wanted, 1), least);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9 * step; t += step) found.push(Math.abs(t) < 1e-9 * step ? 0 : t);
  return found;
}

// Whether a pixel lies inside a closed line of pixels: an odd number of crossings to its right.
function within([x, y], line) {
  let inside = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [xi, yi] = line[i];
    const [xj, yj] = line[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

// A number to three digits; the whole part of it is never rounded away.
const shown = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return String(size >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
};

// A number with the decimals that tell a hundredth of an extent, as one would read it off a scale.
const inSteps = (value, extent) => {
  if (!Number.isFinite(value) || !(extent > 1e-3) || Math.abs(value) >= 1e6) return shown(value);
  return value.toFixed(Math.max(0, Math.ceil(2 - Math.log10(extent)))).replace(/^-(?=[0.]*$)/, ""); // 0.00, not -0.00
};

// A number of a column, by the extent of that column; whole ones stay whole in columns of such.
const rounded = (page, j, value) => (Number.isInteger(value) && isWhole(page, j) ? shown(value) : inSteps(value, page.high[j] - page.low[j]));

// Whether a column holds whole numbers only; each is looked through once.
function isWhole(page, j) {
  page.whole ??= [];
  if (page.whole[j] === undefined) {
    const D = page.columns.length;
    page.whole[j] = Boolean(page.table) && Array.from({ length: page.n }, (_, i) => page.table[i * D + j]).every((cell) => Number.isInteger(cell) || !Number.isFinite(cell));
  }
  return page.whole[j];
}
