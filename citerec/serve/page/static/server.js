// Requests to the server. A request that did not reach it, or that it was too busy for, is
// repeated; nothing is lost.

import { $, h } from "./dom.js";

const WAITS = [1, 2, 3, 5, 8, 10]; // seconds before each attempt; the last one is repeated
const MOST_ATTEMPTS = 60;
const TOKEN = "citerec-token"; // forgotten when the tab is closed
const SILENT = 90_000; // milliseconds without an answer after which a request counts as lost

export class Problem extends Error {
  constructor(detail, status) {
    super(detail);
    this.status = status;
  }
}

class Unreachable extends Error {}
class Locked extends Error {}
class Busy extends Error {
  constructor(seconds) {
    super("busy");
    this.seconds = seconds;
  }
}

async function problemOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    /* no JSON: a proxy, perhaps */
  }
  const detail =
    typeof body.detail === "string" ? body.detail : (body.detail?.[0]?.msg ?? body.title);
  return new Problem(
    detail || `The server answered ${response.status} ${response.statusText}.`,
    response.status,
  );
}

async function send(path, options) {
  let response;
  try {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.status === 401) throw new Locked();
  if (response.status === 429) throw new Busy(Number(response.headers.get("Retry-After")) || 2);
  if ([502, 503, 504].includes(response.status)) throw new Unreachable();
  if (!response.ok) throw await problemOf(response);
  return response;
}

export function notify(...content) {
  const place = $("#trouble");
  place.hidden = !content.length;
  place.replaceChildren(...content);
}

function wait(seconds, text, signal) {
  return new Promise((resolve, reject) => {
    let left = Math.ceil(seconds);
    const number = h("b", {}, `${left} s`);
    const now = h("button", { type: "button", on: { click: () => finish(resolve) } }, "Try now");
    const timer = setInterval(() => {
      number.textContent = `${--left} s`;
      if (left <= 0) finish(resolve);
    }, 1000);
    const stop = () => finish(() => reject(new DOMException("stopped", "AbortError")));
    const finish = then => {
      clearInterval(timer);
      signal?.removeEventListener("abort", stop);
      then();
    };
    signal?.addEventListener("abort", stop);
    notify(h("span", {}, text, " Next attempt in "), number, now);
  });
}

function askForToken(signal) {
  return /** @type {Promise<void>} */ (
    new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
      const field = h("input", {
        type: "password",
        id: "token",
        autocomplete: "off",
        required: true,
      });
      notify(
        h(
          "form",
          {
            class: "token",
            on: {
              submit: event => {
                event.preventDefault();
                sessionStorage.setItem(TOKEN, field.value.trim());
                resolve();
              },
            },
          },
          h(
            "label",
            { for: "token" },
            sessionStorage.getItem(TOKEN)
              ? "The server does not know this token; another one:"
              : "This server needs a token:",
          ),
          field,
          h("button", {}, "Use it"),
        ),
      );
      field.focus();
    })
  );
}

// Runs `attempt` until the server answers; a Problem of the request itself ends it.
export async function reach(attempt, signal) {
  for (let tries = 0; ; tries++) {
    try {
      const value = await attempt();
      notify();
      return value;
    } catch (error) {
      if (error instanceof Locked) {
        await askForToken(signal);
        continue;
      }
      if (error instanceof Problem || error.name === "AbortError" || tries >= MOST_ATTEMPTS) {
        notify();
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

export const get = (path, parameters = {}, signal = undefined) =>
  reach(
    async () => (await send(`${path}?${new URLSearchParams(parameters)}`, { signal })).json(),
    signal,
  );

const json = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

export const exported = (index, ids, format) =>
  reach(async () => (await send("page/export", json({ index, ids, format }))).text());

export async function readFiles(index, files) {
  const form = new FormData();
  for (const file of files) form.append("files", file, file.path || file.name);
  return reach(async () =>
    (
      await send(`page/draft?${new URLSearchParams({ index })}`, { method: "POST", body: form })
    ).json(),
  );
}

export const search = (request, signal) =>
  reach(
    async () =>
      (
        await send(
          "page/recommend",
          json(request, AbortSignal.any([signal, AbortSignal.timeout(SILENT)])),
        )
      ).json(),
    signal,
  );
