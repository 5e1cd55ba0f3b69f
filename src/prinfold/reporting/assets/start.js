window.prinfold = report(document.body, JSON.parse(document.getElementById("prinfold-data").textContent));
