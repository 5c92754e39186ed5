// Requests to the server. A request that did not reach it, or that it was too busy for, is
// repeated; nothing is lost.

import { $ } from "./browser.js";
import { tab, update } from "./store.js";

const WAITS = [1, 2, 3, 5, 8, 10]; // seconds before each attempt; the last one is repeated
const MOST_ATTEMPTS = 60;
const TOKEN = "citerec-token"; // forgotten when the tab is closed
const SILENT = 90_000; // milliseconds without an answer after which a request counts as lost

export class Problem extends Error {
  /** @param {string} message */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

class Unreachable extends Error {}
class Locked extends Error {}
class Busy extends Error {
  /** @param {number} seconds */
  constructor(seconds) {
    super("busy");
    this.seconds = seconds;
  }
}

/** @type {(response: Response) => Promise<Problem>} */
async function problemOf(response) {
  const { detail, title } = await response.json().catch(() => ({})); // no JSON: a proxy, perhaps
  const text = typeof detail === "string" ? detail : (detail?.[0]?.msg ?? title);
  const said = text || `The server answered ${response.status} ${response.statusText}.`;
  return new Problem(said, response.status);
}

/** @type {(path: string, options: RequestInit) => Promise<Response>} */
async function send(path, options) {
  let response;
  try {
    const token = tab.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.status === 401) throw new Locked();
  if (response.status === 429) throw new Busy(Number(response.headers.get("Retry-After")) || 2);
  // 504: of a proxy; that of the server tells why, and the same search would take as long again
  const isTooLong = response.headers.get("Content-Type")?.startsWith("application/problem");
  if ([502, 503].includes(response.status) || (response.status === 504 && !isTooLong))
    throw new Unreachable();
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** @type {(signal?: AbortSignal | null) => Promise<never>} */
const stopped = signal =>
  new Promise((_, reject) =>
    signal?.addEventListener("abort", () => {
      update({ trouble: null });
      reject(new DOMException("stopped", "AbortError"));
    }),
  );

/** @type {(seconds: number, text: string, signal?: AbortSignal | null) => Promise<void>} */
async function wait(seconds, text, signal) {
  let left = Math.ceil(seconds),
    timer = 0;
  /** @type {Promise<void>} */
  const over = new Promise(resolve => {
    const show = () => update({ trouble: { text, left, retry: resolve } });
    timer = setInterval(() => (--left > 0 ? show() : resolve()), 1000);
    show();
  });
  await Promise.race([over, stopped(signal)]).finally(() => clearInterval(timer));
}

/** @type {(signal?: AbortSignal | null) => Promise<void>} */
async function askForToken(signal) {
  const isKnown = Boolean(tab.getItem(TOKEN));
  /** @type {Promise<string>} */
  const given = new Promise(use => update({ trouble: { isKnown, use } }));
  $("#token").value = "";
  $("#token").focus();
  tab.setItem(TOKEN, await Promise.race([given, stopped(signal)]));
}

// Runs `attempt` until the server answers; a Problem of the request itself ends it.
/** @type {(attempt: () => Promise<any>, signal?: AbortSignal | null) => Promise<any>} */
async function reach(attempt, signal) {
  for (let tries = 0; ; tries++) {
    try {
      const value = await attempt();
      update({ trouble: null });
      return value;
    } catch (error) {
      if (error instanceof Locked) {
        await askForToken(signal);
        continue;
      }
      if (error instanceof Problem || error.name === "AbortError" || tries >= MOST_ATTEMPTS) {
        update({ trouble: null });
        throw error;
      }
      if (error instanceof Busy)
        await wait(error.seconds, "The server is busy with other drafts; yours is kept.", signal);
      else if (error instanceof Unreachable)
        await wait(
          WAITS[Math.min(tries, WAITS.length - 1)],
          "The server does not answer. Your draft and marks are kept in this browser.",
          signal,
        );
      else throw error;
    }
  }
}

/** @type {(path: string, options: RequestInit) => Promise<any>} */
export const ask = (path, options) =>
  reach(async () => (await send(path, options)).json(), options.signal);

// Without a second attempt: for what the page can do without.
/** @type {(path: string, options: RequestInit) => Promise<any>} */
export const once = async (path, options) => (await send(path, options)).json();

/** @type {(body: object, signal?: AbortSignal) => RequestInit} */
export const json = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

/** @type {(path: string, parameters?: any, signal?: AbortSignal) => Promise<any>} */
export const get = (path, parameters = {}, signal = undefined) =>
  ask(`${path}?${new URLSearchParams(parameters)}`, { signal });

// The rows of papers, without those that the corpus does not have.
/** @type {(index: string, ids: string[]) => Promise<Listed[]>} */
export async function rowsOf(index, ids) {
  const rows = [];
  for (let i = 0; i < ids.length; i += 100) {
    const some = ids.slice(i, i + 100).map(id => ["ids", id]);
    rows.push(...(await get("page/papers", [["index", index], ...some])).rows);
  }
  return rows;
}

/** @type {(request: object) => Promise<{ text: string, notice: string }>} */
export const exported = request =>
  reach(async () => {
    const response = await send("v1/export", json(request));
    const notice = decodeURIComponent(response.headers.get("Citerec-Notice") ?? "");
    return { text: await response.text(), notice: notice && `; ${notice}` };
  });

// Saves papers into the Zotero of this machine.
/** @type {(request: object) => Promise<{ saved: number, known: number }>} */
export const zotero = request => ask("v1/zotero", json(request));

/** @type {(index: string, files: Sent[], signal?: AbortSignal) => Promise<Read>} */
export function readFiles(index, files, signal) {
  const body = new FormData();
  for (const file of files) body.append("files", file, file.path || file.name);
  return ask(`page/draft?${new URLSearchParams({ index })}`, { method: "POST", body, signal });
}

/** @type {(request: object, signal: AbortSignal) => Promise<Answer>} */
export const search = (request, signal) =>
  reach(async () => {
    const within = AbortSignal.any([signal, AbortSignal.timeout(SILENT)]);
    return (await send("page/recommend", json(request, within))).json();
  }, signal);

/** @type {(request: object, signal: AbortSignal) => Promise<{ answers: SentenceAnswer[] }>} */
export const sentences = (request, signal) => ask("v1/recommend", json(request, signal));
