// The surface among the rows in three columns: turned by dragging or by the arrow keys, nothing but canvas.

const TURN = 0.0087;

// Rows of a matrix in one view: chosen columns, each over its own extent, so that all fit into a cube of half side 1.
function cubeOf(page, chosen) {
  const D = page.columns.length;
  const ends = chosen.map((j) => {
    if (j < 0) return [0, 1];
    let [low, high] = [Infinity, -Infinity];
    for (const matrix of [page.rows, page.vertices, page.lines]) {
      for (let i = j; i < matrix.length; i += D) {
        if (matrix[i] < low) low = matrix[i];
        if (matrix[i] > high) high = matrix[i];
      }
    }
    return widened(low, high);
  });
  const place = (matrix, i) => chosen.map((j, a) => (j < 0 ? 0 : (2 * (matrix[i * D + j] - ends[a][0])) / (ends[a][1] - ends[a][0]) - 1));
  const all = (matrix) => Array.from({ length: matrix.shape[0] }, (_, i) => place(matrix, i));
  return { ends, rows: all(page.rows), vertices: all(page.vertices), lines: all(page.lines) };
}

// Turned about the upright axis, then tilted towards the reader; the last coordinate points at the reader.
function turned([x, y, z], state) {
  const [c, s] = [Math.cos(state.turn), Math.sin(state.turn)];
  const [u, v] = [c * x + s * y, -s * x + c * y];
  const [p, q] = [Math.cos(state.tilt), Math.sin(state.tilt)];
  return [u, p * z + q * v, q * z - p * v];
}

// Parts of the picture as [depth, kind, …], in pixels.
function partsOf(page, cube, state, toPixel) {
  const seen = (places) => places.map((place) => turned(place, state));
  const [rows, vertices, lines] = [seen(cube.rows), seen(cube.vertices), seen(cube.lines)];
  const parts = [];
  for (let f = 0; f < page.faces.length; f += 3) {
    const corners = [vertices[page.faces[f]], vertices[page.faces[f + 1]], vertices[page.faces[f + 2]]];
    parts.push([(corners[0][2] + corners[1][2] + corners[2][2]) / 3, "face", corners.map(toPixel), brightness(corners)]);
  }
  let at = 0;
  for (const length of page.lengths) {
    for (let i = at; i + 1 < at + length; i++) parts.push([(lines[i][2] + lines[i + 1][2]) / 2 + 1e-3, "line", toPixel(lines[i]), toPixel(lines[i + 1])]);
    at += length;
  }
  rows.forEach((row, i) => row.every(Number.isFinite) && parts.push([row[2] + 2e-3, "row", toPixel(row), i]));
  return parts.sort((a, b) => a[0] - b[0]);
}

function brightness([a, b, c]) {
  const u = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
  const v = [c[0] - a[0], c[1] - a[1], c[2] - a[2]];
  const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
  const size = Math.hypot(...n);
  return size > 0 ? Math.abs(0.35 * n[0] + 0.45 * n[1] + 0.82 * n[2]) / size : 1;
}

const PENS = {
  face: (context, [, , corners, light], ink) => {
    const level = ink.dark ? 70 + 90 * light : 150 + 80 * light;
    context.fillStyle = `rgba(${level - 18},${level},${level + 18},0.55)`;
    context.beginPath();
    corners.forEach(([x, y]) => context.lineTo(x, y));
    context.fill();
  },
  line: (context, [, , from, to], ink) => {
    context.strokeStyle = ink.text;
    context.globalAlpha = ink.curve ? 1 : 0.35;
    context.lineWidth = ink.curve ? 2.2 : 1;
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.globalAlpha = 1;
  },
  row: (context, [, , [x, y], i], ink) => {
    const style = ink.styleOf(i);
    context.fillStyle = style.colour;
    context.globalAlpha = 0.85;
    context.beginPath();
    shape(context, style.shape, x, y, ink.radius);
    context.fill();
    context.globalAlpha = 1;
  },
};

// The box round the rows: edges that do not hide anything, and an axis on three of its outer ones.
function paintAxes(context, page, chosen, cube, state, toPixel, ink) {
  const at = (corner) => toPixel(turned(corner, state));
  const near = [0, 1, 2].map((a) => (turned([0, 1, 2].map((b) => Number(a === b)), state)[2] > 0 ? 1 : -1));
  const flat = chosen[2] < 0;
  const floor = flat ? 0 : -near[2];
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  const edge = (a, corner) => {
    const [from, to] = [[...corner], [...corner]];
    [from[a], to[a]] = [-1, 1];
    context.beginPath();
    context.moveTo(...at(from));
    context.lineTo(...at(to));
    context.stroke();
    return [at(from), at(to)];
  };
  // Walls behind and the floor: every edge but those that meet in the corner nearest to the reader.
  for (const a of flat ? [0, 1] : [0, 1, 2]) {
    for (const s of [-1, 1]) {
      for (const t of flat ? [0] : [-1, 1]) {
        const corner = [0, 0, 0];
        [corner[(a + 1) % 3], corner[(a + 2) % 3]] = flat && a === 1 ? [t, s] : [s, t];
        if (corner.some((x, b) => b !== a && x !== near[b])) edge(a, corner);
      }
    }
  }
  const uprights = [[near[0], -near[1], 0], [-near[0], near[1], 0]].sort((p, q) => at(p)[0] - at(q)[0]);
  const corners = [[0, near[1], floor], [near[0], 0, floor], uprights[0]];
  const middle = at([0, 0, 0]);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  chosen.forEach((j, a) => {
    if (j < 0) return;
    const ends = edge(a, corners[a]);
    const center = [(ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2];
    const far = Math.hypot(center[0] - middle[0], center[1] - middle[1]) || 1;
    const out = [(center[0] - middle[0]) / far, (center[1] - middle[1]) / far];
    if (Math.hypot(ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]) < 30) return; // it points at the reader
    const before = out[0] < -0.4 ? 1 : out[0] > 0.4 ? 0 : 0.5;
    const write = (words, [x, y], step) => {
      const room = context.measureText(words).width;
      context.fillText(words, Math.max(Math.min(x + step * out[0] - before * room, ink.width - room - 3), 3), y + step * out[1]);
    };
    context.fillStyle = ink.soft;
    ends.forEach((place, end) => write(shown(cube.ends[a][end] + page.center[j]), place, 12));
    context.fillStyle = ink.text;
    write(page.columns[j], center, 16);
  });
}

function scene(root, page) {
  const option = (value, words, chosen) => element("option", { value, selected: chosen }, words);
  const solid = page.columns.length > 2;
  const chosen = [0, 1, 2].map((a) => page.chosen[a] ?? -1);
  const state = { turn: -0.7, tilt: solid ? 0.45 : Math.PI / 2, near: 1 };
  if (!solid) state.turn = 0;
  const home = { ...state };
  const selects = ["x", "y", "z"].map((axis, a) =>
    element("select", { "aria-label": `column on the ${axis} axis` }, ...(a === 2 ? [option(-1, "nothing", chosen[2] < 0)] : []), ...page.columns.map((name, j) => option(j, name, j === chosen[a])))
  );
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": "the surface among the rows in the three columns chosen; arrow keys turn it, plus and minus zoom, 0 resets" });
  const box = element("div", { class: "pf-scene" }, canvas);
  const bar = element("div", { class: "pf-bar" }, ...selects.map((select, a) => element("label", {}, `${"xyz"[a]} `, select)));
  const reset = element("button", { type: "button", title: "as it was (key 0)" }, "Reset");
  const legend = element("div", { class: "pf-legend" });
  bar.append(reset);
  root.append(bar, box, legend);
  let styles = [];
  const restyle = (palette) => {
    styles = (page.classes ? page.classes.names : [""]).map((name, i) => ({ name, colour: palette[i % palette.length], shape: SHAPES[i % SHAPES.length] }));
    legend.replaceChildren(...(page.classes ? styles.map((style) => element("span", { class: "pf-key" }, swatchOf(style), style.name)) : []));
  };
  const styleOf = (i) => (page.classes ? styles[page.classes.index[i]] ?? { colour: NO_VALUE, shape: "disc" } : styles[0]);
  let dark = null;
  let cube = cubeOf(page, chosen);
  let waiting = false;
  function repaint() {
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  }
  function paint() {
    waiting = false;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [box.clientWidth, box.clientHeight];
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    // Names and numbers stand beside the box, for which a narrow window has to leave room.
    const size = (Math.min(Math.max(width - 110, 100) * 1.15, height) / (solid ? 3.4 : 2.6)) * state.near;
    const toPixel = ([x, y]) => [width / 2 + size * x, height / 2 - size * y];
    const ink = { ...inkOf(root), width, styleOf, curve: page.curve, radius: page.rows.shape[0] > 800 ? 2 : 3 };
    if (ink.dark !== dark) restyle(ink.dark ? PALETTE_DARK : PALETTE);
    dark = ink.dark;
    paintAxes(context, page, chosen, cube, state, toPixel, ink);
    for (const part of partsOf(page, cube, state, toPixel)) PENS[part[1]](context, part, ink);
  }
  function choose(columns) {
    columns.forEach((j, a) => {
      chosen[a] = j;
      selects[a].value = j;
    });
    cube = cubeOf(page, chosen);
    repaint();
  }
  selects.forEach((select) => select.addEventListener("change", () => choose(selects.map((each) => Number(each.value)))));
  const turn = (dx, dy) => {
    state.turn += dx;
    state.tilt = Math.min(Math.max(state.tilt + dy, -Math.PI / 2), Math.PI / 2);
    repaint();
  };
  const zoom = (factor) => {
    state.near = Math.min(Math.max(state.near * factor, 0.4), 6);
    repaint();
  };
  const again = () => (Object.assign(state, home), repaint());
  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = [event.clientX, event.clientY];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    turn(-TURN * (event.clientX - last[0]), TURN * (event.clientY - last[1]));
    last = [event.clientX, event.clientY];
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (last = null));
  // A page is scrolled with the wheel, so that zooming asks for Ctrl besides.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-0.0015 * event.deltaY));
  }, { passive: false });
  const KEYS = { ArrowLeft: () => turn(0.1, 0), ArrowRight: () => turn(-0.1, 0), ArrowUp: () => turn(0, -0.1), ArrowDown: () => turn(0, 0.1), "+": () => zoom(1.2), "=": () => zoom(1.2), "-": () => zoom(1 / 1.2), 0: again };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  reset.addEventListener("click", again);
  for (const note of page.notes) root.append(element("p", { class: "pf-note" }, note));
  new ResizeObserver(repaint).observe(box);
  const D = page.columns.length;
  const valueOf = (i) => chosen.map((j) => (j < 0 ? 0 : page.rows[i * D + j] + page.center[j]));
  const vertexOf = (i) => chosen.map((j) => (j < 0 ? 0 : page.vertices[i * D + j] + page.center[j]));
  return { choose, chosen, state, valueOf, vertexOf, repaint };
}

function swatchOf(style) {
  const canvas = element("canvas", { width: 14, height: 14, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.fillStyle = style.colour;
  context.beginPath();
  shape(context, style.shape, 7, 7, 4.5);
  context.fill();
  return canvas;
}

function report(body, packed) {
  const page = unpack(packed);
  const root = document.getElementById("pf-scene");
  const view = page.scene && root ? scene(root, page.scene) : null;
  const repaint = () => view && view.repaint();
  document.getElementById("pf-theme").addEventListener("click", () => {
    body.dataset.theme = inkOf(body).dark ? "light" : "dark";
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  return { page, scene: view };
}
