"use strict";
// The page of `domino serve`: asks the server's own addresses, and shows tokens as they come. All text of the
// model is set as text, never as HTML.

const at = (id) => document.getElementById(id);
const EXAMPLES = {
  json_schema: '{\n  "type": "object",\n  "properties": {\n    "name": {"type": "string", "maxLength": 20},\n' +
    '    "age": {"type": "integer", "minimum": 0, "maximum": 120}\n  },\n  "required": ["name", "age"],\n' +
    '  "additionalProperties": false\n}',
  regex: "[A-Z][a-z]{2,9}, [0-9]{4}-[0-9]{2}-[0-9]{2}",
  gbnf: 'root ::= "yes" | "no" | "because " [a-z ]{3,40} "."',
  lark: 'start: "SELECT " NAME " FROM " NAME\nNAME: /[a-z]{1,9}/',
  tools: '[{"type": "function", "function": {"name": "weather", "parameters": {\n  "type": "object",\n' +
    '  "properties": {"city": {"type": "string", "maxLength": 20}},\n  "required": ["city"]}}}]',
};
let stopping = null;

function headers() {
  const key = at("key").value;
  return { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
}

async function look(path) {
  const answer = await fetch(path, { headers: headers() });
  if (answer.status === 401) at("keys").hidden = false;
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error?.message ?? answer.status);
  return body.data;
}

async function begin() {
  try {
    const [models, grammars] = await Promise.all([look("v1/models"), look("v1/grammars")]);
    at("model").textContent = models[0].id;
    at("name").replaceChildren(...grammars.map(({ id, about }) => {
      const option = new Option(id, id);
      option.title = about ?? "";
      return option;
    }));
    at("name").value = grammars.some(({ id }) => id === "json") ? "json" : grammars[0]?.id;
    at("wrong").textContent = "";
  } catch (error) {
    at("model").textContent = "";
    at("wrong").textContent = error.message;
  }
}

function choose() {
  const kind = at("kind").value;
  at("names").hidden = kind !== "named";
  const written = kind in EXAMPLES;
  at("grammar").hidden = at("grammar-label").hidden = !written;
  at("grammar").value = written ? EXAMPLES[kind] : "";
  if (kind === "tools") at("as").value = "chat";
}

/** The address and the body of the request. */
function asked() {
  const [kind, text] = [at("kind").value, at("grammar").value];
  const chat = at("as").value === "chat" || kind === "tools";
  const body = {
    model: "default", max_tokens: at("most").valueAsNumber, temperature: at("temperature").valueAsNumber,
    seed: at("seed").valueAsNumber, stream: true, stream_options: { include_usage: true, include_passes: true },
  };
  if (chat) body.messages = [{ role: "user", content: at("prompt").value }];
  else body.prompt = at("prompt").value;
  if (kind === "named") body.grammar = { type: kind, value: at("name").value };
  else if (kind === "tools") Object.assign(body, { tools: JSON.parse(text), tool_choice: "required" });
  else if (kind !== "none") body.grammar = { type: kind, value: text };
  return [chat ? "v1/chat/completions" : "v1/completions", body];
}

/** The objects of a stream of events. */
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}

/** The text of a piece, whatever it is part of. */
function shown(choice) {
  const delta = choice.delta ?? {};
  const calls = (delta.tool_calls ?? []).map(({ function: called }) =>
    (called.name ? `\n${called.name} ` : "") + (called.arguments ?? ""));
  return (choice.text ?? "") + (delta.reasoning_content ?? "") + (delta.content ?? "") + calls.join("");
}

async function write(event) {
  event.preventDefault();
  at("text").replaceChildren();
  at("wrong").textContent = at("counts").textContent = "";
  stopping = new AbortController();
  at("write").disabled = !(at("stop").disabled = false);
  let [first, passes, ended] = [null, 0, ""];
  const begun = performance.now();
  try {
    const [path, body] = asked();
    const init = { method: "POST", headers: headers(), body: JSON.stringify(body), signal: stopping.signal };
    const answer = await fetch(path, init);
    if (answer.status === 401) at("keys").hidden = false;
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    for await (const piece of events(answer)) {
      if (piece.error) throw new Error(piece.error.message);
      for (const choice of piece.choices ?? []) {
        const text = shown(choice);
        ended = choice.finish_reason ?? ended;
        if (!text) continue;
        first ??= performance.now() - begun;
        const span = document.createElement("span");
        span.textContent = text;
        const now = choice.domino?.passes ?? 0;
        span.className = now && now === passes ? "draft" : "drawn";
        passes = now;
        at("text").append(span);
      }
      if (piece.usage) count(piece.usage, first, performance.now() - begun, ended);
    }
  } catch (error) {
    at("wrong").textContent = error.name === "AbortError" ? "stopped" : error.message;
  }
  at("stop").disabled = !(at("write").disabled = false);
}

function count(usage, first, took, ended) {
  const tokens = usage.completion_tokens;
  const rate = tokens > 1 ? (1000 * (tokens - 1)) / (took - first) : 0;
  const parts = [`${tokens} tokens (${ended})`, `first after ${Math.round(first)} ms`, `${rate.toFixed(0)} a second`];
  const own = usage.domino;
  if (own) parts.push(`${own.passes} passes`, `${own.accepted} of ${own.drafted} drafted tokens came true`);
  at("counts").textContent = parts.join(", ");
}

at("kind").addEventListener("change", choose);
at("ask").addEventListener("submit", write);
at("stop").addEventListener("click", () => stopping?.abort());
at("key").addEventListener("change", begin);
begin();
