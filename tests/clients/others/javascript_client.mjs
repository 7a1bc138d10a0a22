// The official clients in JavaScript, OpenAI's and Anthropic's: a type in chats, responses and messages, whole and
// streamed, and a function. OPENAI_BASE_URL and OPENAI_API_KEY come from the environment.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const [baseURL, apiKey] = [process.env.OPENAI_BASE_URL, process.env.OPENAI_API_KEY];
const openai = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey, maxRetries: 0 });

const PROMPT = "A JSON file describing a person: ";
const messages = [{ role: "user", content: PROMPT }];
// A small model left alone with white space gets stuck in it.
const own = { seed: 1, grammar_options: { whitespace: "compact" } };
const Person = z.object({ name: z.enum(["Ada", "Alan", "Grace"]), age: z.union([z.literal(7), z.literal(30)]) });
const asked = { model: "default", ...own };

const tests = {
  async chat() {
    const format = zodResponseFormat(Person, "person");
    const answer = await openai.chat.completions.parse({ ...asked, messages, response_format: format });
    Person.parse(answer.choices[0].message.parsed);
  },
  async responses() {
    const body = { ...asked, input: PROMPT, text: { format: zodTextFormat(Person, "person") } };
    const answer = await openai.responses.parse(body);
    Person.parse(answer.output_parsed);
    const stream = openai.responses.stream(body);
    let text = "";
    stream.on("response.output_text.delta", (event) => (text += event.delta));
    const last = await stream.finalResponse();
    assert.equal(text, last.output_text);
    assert.deepEqual(last.output_parsed, answer.output_parsed);
  },
  async functions() {
    const schema = { type: "object", properties: { color: { enum: ["red", "green"] } }, required: ["color"] };
    const tool = { type: "function", name: "paint", parameters: { ...schema, additionalProperties: false }, strict: true };
    const answer = await openai.responses.create({ ...asked, input: PROMPT, tools: [tool], tool_choice: "required" });
    const [call] = answer.output.filter(({ type }) => type === "function_call");
    assert.ok(["red", "green"].includes(JSON.parse(call.arguments).color), call.arguments);
  },
  async messages() {
    const format = { type: "json_schema", schema: z.toJSONSchema(Person) };
    const body = { ...asked, max_tokens: 200, messages, output_config: { format } };
    const answer = await anthropic.messages.create(body);
    Person.parse(JSON.parse(answer.content[0].text));
    const last = await anthropic.messages.stream(body).finalMessage();
    assert.equal(last.content[0].text, answer.content[0].text);
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`javascript: ${name} ok`);
}
