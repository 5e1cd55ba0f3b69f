// The fitted surface, evaluated in the page: the same sums as `inverse_transform`, in double precision.

// Arrays travel as base64 of little-endian numbers, {type, shape, data}; everything else is plain JSON.
const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, u1: Uint8Array };

function unpack(tree) {
  if (Array.isArray(tree)) return tree.map(unpack);
  if (tree === null || typeof tree !== "object") return tree;
  if (typeof tree.data === "string" && tree.type in ARRAYS) {
    const text = atob(tree.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const array = new ARRAYS[tree.type](bytes.buffer);
    array.shape = tree.shape;
    return array;
  }
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, unpack(value)]));
}

// An angle becomes its cosine and sine, everything else stands for itself, so that no map has a seam.
function embed(latent, z) {
  if (latent.kind === "sphere") {
    const length = Math.hypot(...z) || 1;
    return z.map((x) => x / length);
  }
  return z.flatMap((x, axis) => (latent.periodic[axis] ? [Math.cos(x), Math.sin(x)] : [x]));
}

function squaredDistance(point, points, row, width) {
  let s = 0;
  for (let a = 0; a < width; a++) {
    const d = point[a] - points[row * width + a];
    s += d * d;
  }
  return s;
}

function addRow(out, weight, rows, row) {
  const D = out.length;
  for (let j = 0; j < D; j++) out[j] += weight * rows[row * D + j];
}

// Radial functions by name, of the squared distance in units of the width.
const RADIAL = {
  gaussian: (s) => Math.exp(-0.5 * s),
  matern32: (s) => (1 + Math.sqrt(3 * s)) * Math.exp(-Math.sqrt(3 * s)),
  matern52: (s) => (1 + Math.sqrt(5 * s) + (5 * s) / 3) * Math.exp(-Math.sqrt(5 * s)),
};

const DECODERS = {
  // y = Σ k(‖E − c‖²/w²) v + E·slope + bias: basis functions and Gaussian processes alike.
  radial(d, latent) {
    const [n, e] = d.centers.shape;
    const k = RADIAL[d.function];
    return (z) => {
      const E = embed(latent, z);
      const y = Float64Array.from(d.bias);
      for (let m = 0; m < n; m++) addRow(y, k(squaredDistance(E, d.centers, m, e) / d.width ** 2), d.weights, m);
      if (d.slope) for (let a = 0; a < e; a++) addRow(y, E[a], d.slope, a);
      return y;
    };
  },

  // y = Σ cos hθ a_h + sin hθ b_h + bias.
  harmonic(d) {
    return (z) => {
      const y = Float64Array.from(d.bias);
      for (let h = 1; 2 * h <= d.weights.shape[0]; h++) {
        addRow(y, Math.cos(h * z[0]), d.weights, 2 * h - 2);
        addRow(y, Math.sin(h * z[0]), d.weights, 2 * h - 1);
      }
      return y;
    };
  },

  // Kernel regression on latent points: y = Σ w k v / Σ w k; where no kernel reaches, the value of the nearest point.
  kernel(d, latent) {
    const [n, Q] = d.centers.shape;
    const share = kernelShares(d);
    return (at) => {
      const z = d.units ? embed(latent, at).map((x, a) => x * d.units[a]) : at;
      const y = Float64Array.from(d.offset);
      const found = share(z);
      if (found.total > 0) for (let j = 0; j < n; j++) if (found.weight[j] > 0) addRow(y, found.weight[j] / found.total, d.values, j);
      if (found.total === 0) addRow(y, 1, d.values, nearest(z, d.centers, n, Q));
      return y;
    };
  },

  // Cubic pieces between the nodes of branches that are laid end to end.
  branches(d) {
    return (z) => {
      const { from, to, t, step } = pieceOf(d, z[0]);
      const y = Float64Array.from(d.offset);
      const rise = t * t * (3 - 2 * t);
      addRow(y, 1 - rise, d.points, from);
      addRow(y, rise, d.points, to);
      addRow(y, t * (t - 1) ** 2 * step, d.tangents, from);
      addRow(y, t * t * (t - 1) * step, d.tangents, to);
      return y;
    };
  },

  // Straight pieces between the nodes of branches that are laid end to end.
  polyline(d) {
    return (z) => {
      const { from, to, t } = pieceOf(d, z[0]);
      const y = new Float64Array(d.points.shape[1]);
      addRow(y, 1 - t, d.points, from);
      addRow(y, t, d.points, to);
      return y;
    };
  },

  // Straight pieces between the points of a lattice: over a box, or over longitude and latitude of a sphere.
  grid(d) {
    const q = d.cells.length;
    const turn = 2 * Math.PI;
    return (z) => {
      const place = d.sphere ? [Math.atan2(z[1], z[0]), Math.asin(Math.min(Math.max(z[2] / (Math.hypot(...z) || 1), -1), 1))] : z;
      const at = Array.from({ length: q }, (_, a) => {
        const x = d.periodic[a] ? place[a] - turn * Math.floor((place[a] - d.low[a]) / turn) : place[a];
        return (Math.min(Math.max((x - d.low[a]) / (d.high[a] - d.low[a]), 0), 1) || 0) * d.cells[a];
      });
      const cell = at.map((x, a) => Math.min(Math.floor(x), d.cells[a] - 1));
      const y = new Float64Array(d.points.shape[1]);
      for (let corner = 0; corner < 1 << q; corner++) {
        let [weight, row] = [1, 0];
        for (let a = 0; a < q; a++) {
          const ahead = (corner >> a) & 1;
          weight *= ahead ? at[a] - cell[a] : 1 - at[a] + cell[a];
          row = row * (d.cells[a] + 1) + cell[a] + ahead;
        }
        if (weight > 0) addRow(y, weight, d.points, row);
      }
      return y;
    };
  },

  // Hermite's cubics in the cells of a lattice, from values, slopes and mixed slopes at its nodes.
  net(d, latent) {
    const Q = d.counts.length;
    const K = d.counts.reduce((product, n) => product * n, 1);
    return (z) => {
      const axes = z.map((x, a) => cellOf((x - d.low[a]) / d.step[a], d.counts[a], latent.periodic[a]));
      const y = Float64Array.from(d.offset);
      for (let kinds = 0; kinds < 1 << Q; kinds++) {
        for (let ends = 0; ends < 1 << Q; ends++) {
          let weight = 1;
          let node = 0;
          for (let a = 0; a < Q; a++) {
            const bit = Q - 1 - a; // the last axis counts fastest
            const end = (ends >> bit) & 1;
            weight *= axes[a].cubics[end][(kinds >> bit) & 1];
            node = node * d.counts[a] + ((axes[a].corner + end) % d.counts[a]);
          }
          if (weight !== 0) addRow(y, weight, d.fields, kinds * K + node);
        }
      }
      return y;
    };
  },

  // Small polynomials at nodes, blended by triweight kernels; where none reaches, the nearest goes on.
  patches(d) {
    const [n, Q] = d.centers.shape;
    const P = d.coefficients.shape[1];
    return (z) => {
      const y = Float64Array.from(d.offset);
      const near = [];
      let total = 0;
      for (let j = 0; j < n; j++) {
        const s = squaredDistance(z, d.centers, j, Q) / d.bandwidth ** 2;
        if (s < 1) {
          near.push([j, (1 - s) ** 3]);
          total += (1 - s) ** 3;
        }
      }
      if (near.length === 0) near.push([nearest(z, d.centers, n, Q), (total = 1)]);
      for (const [j, k] of near) {
        const powers = monomials(z.map((x, a) => x - d.centers[j * Q + a]));
        for (let p = 0; p < P; p++) addRow(y, (k / total) * powers[p], d.coefficients, j * P + p);
      }
      return y;
    };
  },

  // One of several surfaces, named by the first coordinate.
  charts(d, latent) {
    const parts = d.parts.map((part, i) => DECODERS[part.kind](part, latent.parts[i]));
    return (z) => parts[Math.min(Math.max(Math.round(z[0]), 0), parts.length - 1)](z.slice(1));
  },
};

// The cell of a lattice axis that holds a place, counted in steps, and its cubics by end and by value or slope.
function cellOf(place, count, closed) {
  const where = Math.floor(place);
  const first = closed ? where : Math.min(Math.max(where, 0), Math.max(count - 2, 0));
  if (count === 1) return { corner: 0, cubics: [[1, 0], [0, 0]] };
  const t = Math.min(Math.max(place - first, 0), 1);
  const rise = t * t * (3 - 2 * t);
  return { corner: ((first % count) + count) % count, cubics: [[1 - rise, t * (t - 1) ** 2], [rise, t * t * (t - 1)]] };
}

function kernelShares(d) {
  const [n, Q] = d.centers.shape;
  const logs = new Float64Array(n);
  const weight = new Float64Array(n);
  const logWeight = Float64Array.from(d.weight, Math.log);
  return (z) => {
    let largest = -Infinity;
    for (let j = 0; j < n; j++) {
      const s = squaredDistance(z, d.centers, j, Q);
      const inside = s < d.reach * d.reach;
      logs[j] = !inside ? -Infinity : d.power ? d.power * Math.log1p(-s) : -0.5 * s;
      logs[j] += logWeight[j];
      if (logs[j] > largest) largest = logs[j];
    }
    let total = 0;
    for (let j = 0; j < n; j++) total += weight[j] = largest === -Infinity ? 0 : Math.exp(logs[j] - largest);
    return { weight, total, logSum: largest === -Infinity ? -Infinity : largest + Math.log(total) };
  };
}

function nearest(z, points, n, Q) {
  let best = 0;
  for (let j = 1; j < n; j++) if (squaredDistance(z, points, j, Q) < squaredDistance(z, points, best, Q)) best = j;
  return best;
}

// Between which nodes of which branch a length lies, and how far along.
function pieceOf(d, z) {
  const b = branchOf(z, d.low, d.high);
  const step = d.steps[b];
  const within = Math.min(Math.max(z - d.low[b], 0), d.high[b] - d.low[b]);
  const cell = Math.min(step > 0 ? Math.floor(within / step) : 0, d.cells[b] - 1);
  const t = step > 0 ? within / step - cell : 0;
  return { from: d.first[b] + cell, to: d.first[b] + ((cell + 1) % d.counts[b]), t, step };
}

function branchOf(z, low, high) {
  let best = 0;
  let gap = Infinity;
  for (let b = 0; b < low.length; b++) {
    const away = Math.max(low[b] - z, z - high[b], 0);
    if (away < gap) [best, gap] = [b, away];
  }
  return best;
}

// 1, the coordinates, then all their products.
function monomials(g) {
  const found = [1, ...g];
  for (let i = 0; i < g.length; i++) for (let j = i; j < g.length; j++) found.push(g[i] * g[j]);
  return found;
}

// What predictors become, where columns are levels or counts.
const LINKS = {
  bernoulli: (y, a) => void (y[a] = 1 / (1 + Math.exp(-y[a]))),
  count: (y, a) => void (y[a] = Math.exp(y[a])),
  categorical(y, a, b) {
    const largest = Math.max(...y.subarray(a, b));
    let total = 0;
    for (let j = a; j < b; j++) total += y[j] = Math.exp(y[j] - largest);
    for (let j = a; j < b; j++) y[j] /= total;
  },
};

// The units of the user, where the model was fitted to scaled or rotated columns.
function unscale(units, y) {
  if (!units) return y;
  if (!units.matrix) return y.map((value, j) => value * units.scale[j] + units.shift[j]);
  const out = Float64Array.from(units.shift);
  y.forEach((value, i) => addRow(out, value, units.matrix, i));
  return out;
}

function makeDecoder(page) {
  const { decoder, latent, links, units } = page;
  const map = DECODERS[decoder.kind](decoder, latent);
  return (z) => {
    const y = map(Array.from(z, Number));
    for (const [kind, a, b] of links ?? []) LINKS[kind](y, a, b);
    return unscale(units, y);
  };
}

// Whether there is a surface at a latent coordinate.
function makeDomain(latent, decoder) {
  if (latent.kind === "charts") {
    const parts = latent.parts.map((part, i) => makeDomain(part, decoder.parts[i]));
    return (z) => (parts[Math.round(z[0])] ?? (() => false))(z.slice(1));
  }
  if (latent.kind === "sphere") return (z) => z.length === 3 && Math.abs(Math.hypot(...z) - 1) <= 1e-6;
  if (latent.kind === "branches") return (z) => latent.low.some((low, b) => z[0] >= low - 1e-9 && z[0] <= latent.high[b] + 1e-9);
  const inBox = (z) => z.every((x, a) => latent.periodic[a] || (x >= latent.low[a] - 1e-9 && x <= latent.high[a] + 1e-9));
  if (!latent.density) return inBox;
  const inReach = latent.kind === "region" ? () => true : inBox; // a box with a density ends where the rows do
  const share = kernelShares(latent.density);
  const logTotal = Math.log(latent.density.weight.reduce((a, b) => a + b, 0));
  return (z) => inReach(z) && share(z.map((x) => x / latent.density.bandwidth)).logSum - logTotal >= latent.floor - 1e-9;
}
