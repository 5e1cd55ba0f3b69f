// Nothing but the page is here: the page begins by itself.
window.prinfold = mount(document.getElementById("prinfold"), JSON.parse(document.getElementById("prinfold-data").textContent), undefined, document);
