#!/usr/bin/env bash
# Install a wheel into a clean environment and use it as a newcomer would: tools/smoke_test.sh dist/prinfold-*.whl
# Without a name it builds one first. PYTHON=… picks an interpreter.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="${PYTHON:-python3}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT

if [ $# -eq 0 ]; then
  "$python" -m pip -q --disable-pip-version-check wheel --no-deps --wheel-dir "$place/dist" "$root"
  set -- "$place"/dist/prinfold-*.whl
fi
"$python" -m venv "$place/env"
"$place/env/bin/python" -m pip -q --disable-pip-version-check install "$1"

cd "$place" # away from the checkout, so that only what was installed is found
env -u PYTHONPATH "$place/env/bin/python" - <<'PYTHON'
import numpy as np

import prinfold
from prinfold import GTM, PrincipalCurve, datasets

assert "site-packages" in prinfold.__file__, prinfold.__file__
data = datasets.make_pipe_flow(200, rng=0)
model = GTM(nodes=8, basis=4, max_iter=30).fit(data.table)
model.save("model.prinfold")
again = prinfold.load("model.prinfold")
np.testing.assert_array_equal(again.transform(data.table), model.transform(data.table))
prinfold.explore(again, data.table, "map.html", labels=data.names)
circle = datasets.make_half_circle(100, rng=0)
assert PrincipalCurve().fit(circle.X).projection_error(circle.X) < circle.X.var(axis=0).sum() / 10
np.savetxt("data.csv", data.X, delimiter=",", header=",".join(data.feature_names), comments="")
PYTHON
env -u PYTHONPATH "$place/env/bin/prinfold" fit data.csv --set max_iter=20 --quiet
env -u PYTHONPATH "$place/env/bin/prinfold" explore data.prinfold data.csv --out page.html --quiet
test -s page.html
echo "the wheel works: $(basename "$1")"
