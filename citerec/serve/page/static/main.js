// The page: draws it, and listens to what happens to the window.

import { keepFocus } from "./browser.js";
import { canCollect, follow } from "./collect.js";
import { watchPlanes } from "./figure.js";
import { dropping } from "./files.js";
import { request } from "./draft.js";
import { pressed } from "./keys.js";
import * as desk from "./desk.js";
import { find } from "./search.js";
import { get } from "./server.js";
import { chooseIndex, drawnBy, now, state, update } from "./store.js";
import * as store from "./store.js";
import { addressed, adopted, arrived, elsewhere, travelled } from "./travel.js";
import { draw } from "./views/page.js";

// A printed page, or its file, has the name of the draft; the history of the browser does not.
function printing() {
  const { title } = document;
  addEventListener("beforeprint", () => {
    if (!store.isEmpty()) document.title = `References for ${store.titleOf(state)}`;
  });
  addEventListener("afterprint", () => {
    document.title = title;
  });
}

async function start() {
  drawnBy(draw);
  update();
  now.indexes = (await get("v1/index")).indexes;
  chooseIndex(state.index);
  store.start({ adopted, changed: elsewhere });
  const isOpened = await desk.start();
  const [latest] = store.drafts();
  if (isOpened && store.isEmpty() && latest) store.open(latest.id); // a browser that had nothing
  chooseIndex(state.index);
  keepFocus();
  watchPlanes();
  dropping();
  document.addEventListener("keydown", pressed);
  printing();
  arrived();
  if (canCollect) follow();
  if (!store.viewing && state.searched && typeof request() !== "string" && !now.running)
    find({ push: false });
  addEventListener("popstate", travelled);
  addEventListener("hashchange", addressed);
  update();
  document.documentElement.dataset.ready = "1";
}

start();
