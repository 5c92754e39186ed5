// What to cite for a text: node cite.mjs "The sentence that needs references [CITE]."
// The text is the first argument, else the variable CITEREC_TEXT, else standard input.
// CITEREC_SERVER is the address of the server, CITEREC_TOKEN its token if it has any, CITEREC_K how many papers.
import { readFileSync } from "node:fs";

const { CITEREC_SERVER = "http://127.0.0.1:8000", CITEREC_TOKEN, CITEREC_TEXT, CITEREC_K = "8" } = process.env;
const text = (process.argv[2] ?? CITEREC_TEXT ?? readFileSync(0, "utf8")).trim();

async function post(accept) {
  const response = await fetch(new URL("/v1/recommend", CITEREC_SERVER), {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: accept,
      ...(CITEREC_TOKEN && { Authorization: `Bearer ${CITEREC_TOKEN}` }),
    },
    body: JSON.stringify({ context: text, k: Number(CITEREC_K), fields: ["authors", "venue"] }),
  });
  if (!response.ok) throw new Error((await response.json()).detail);
  return accept === "application/json" ? response.json() : response.text();
}

try {
  const [{ results, empty_reason: why }] = (await post("application/json")).answers;
  for (const { rank, year, title, authors, venue } of results) {
    console.log(`${rank}. ${title}\n   ${authors[0] ?? ""}${authors.length > 1 ? " et al." : ""}, ${venue} ${year ?? ""}`);
  }
  console.log(results.length ? `\n${await post("application/x-bibtex")}` : why);
} catch (error) {
  console.error(`${CITEREC_SERVER}: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
