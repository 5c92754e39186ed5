// The task pane: papers of the local server for the selected text, and their citation and reference at the cursor.

const $ = id => document.getElementById(id);

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) {
    const { detail } = await response.json().catch(() => ({}));
    throw new Error(typeof detail === "string" ? detail : `The server answered ${response.status}.`);
  }
  return response;
}

// The selected text; where nothing is selected, the paragraph of the cursor.
const selectedText = () =>
  Word.run(async context => {
    const selection = context.document.getSelection();
    const paragraph = selection.paragraphs.getFirst();
    selection.load("text");
    paragraph.load("text");
    await context.sync();
    return (selection.text.trim() || paragraph.text).trim();
  });

// Karpukhin et al., 2020
function cited({ authors, title, year }) {
  const families = authors.map(name => (name.includes(",") ? name.split(",")[0] : name.split(" ").at(-1)));
  const names = families.length > 2 ? `${families[0]} et al.` : families.join(" and ");
  return `${names || title}, ${year ?? "n.d."}`;
}

const insertCitation = paper =>
  Word.run(async context => {
    context.document.getSelection().insertText(` (${cited(paper)})`, "End");
    await context.sync();
  });

async function insertReference({ id }) {
  const response = await post("/v1/export", { ids: [id], format: "html", style: $("style").value });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const entry = page.querySelector(".csl-entry");
  entry.querySelector(".Z3988")?.remove(); // for Zotero in a browser
  const html = entry.innerHTML;
  await Word.run(async context => {
    context.document.body.insertParagraph("", "End").insertHtml(html, "Start");
    await context.sync();
  });
}

// Runs what a button does, and says how it ended.
const act = (run, done) => async () => {
  try {
    $("status").textContent = "…";
    await run();
    if (done) $("status").textContent = done;
  } catch (error) {
    $("status").textContent = error instanceof TypeError ? "The server does not answer." : error.message;
  }
};

function button(name, paper, run, done) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: name });
  made.setAttribute("aria-label", `${name}: ${paper.title}`);
  made.addEventListener("click", act(() => run(paper), done));
  return made;
}

function item(paper) {
  const made = document.createElement("li");
  const title = Object.assign(document.createElement("h2"), { textContent: paper.title });
  const by = Object.assign(document.createElement("p"), { textContent: cited(paper) });
  const reason = Object.assign(document.createElement("p"), { textContent: paper.reasons?.[0] ?? "" });
  const cite = button("Cite", paper, insertCitation, "The citation is in the text.");
  const refer = button("Reference", paper, insertReference, "The reference is at the end of the document.");
  made.append(title, by, reason, cite, " ", refer);
  return made;
}

async function find() {
  const context = await selectedText();
  if (!context) throw new Error("Select a sentence in the document.");
  const body = { context: context.slice(0, 2000), k: 8, fields: ["authors", "venue"], explain: true };
  const [{ results, empty_reason: why }] = (await (await post("/v1/recommend", body)).json()).answers;
  $("list").replaceChildren(...results.map(item));
  $("status").textContent = results.length ? `${results.length} papers` : why;
}

Office.onReady(() => $("find").addEventListener("click", act(find)));
