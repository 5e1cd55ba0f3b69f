// The page within a notebook: rows that are selected on it are those of the model behind it, both ways.

function render({ model, el }) {
  let quiet = true; // while one side follows the other, it does not lead it
  const once = (act) => {
    if (quiet) return;
    quiet = true;
    act();
    quiet = false;
  };
  const lead = (rows) => once(() => (model.set("selected", rows), model.save_changes()));
  const page = mount(el, model.get("data"), lead);
  const follow = () => once(() => page.select(model.get("selected")));
  page.select(model.get("selected"));
  quiet = false;
  model.on("change:selected", follow);
  return () => model.off("change:selected", follow);
}

export default { render };
