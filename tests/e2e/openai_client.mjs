// SPDX-License-Identifier: MIT
//
// The official client as a program would use it: only its base URL is another.
//
// usage: openai_client.mjs PACKAGE BASE_URL KEY WORKERS CALLS MAX_RETRIES
//
// Each worker makes CALLS chat completions one after the other, every second one as a stream that tells its usage. On
// standard output what came of them, as JSON.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, baseURL, apiKey, workers, calls, maxRetries] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(join(folder, 'index.mjs')));
const client = new OpenAI({ apiKey, baseURL, maxRetries: Number(maxRetries) });

const told = { calls: 0, streams: 0, tokens: 0, words: 0, completionTokens: 0, failures: [] };

function add(usage, text) {
  told.calls += 1;
  told.tokens += usage.total_tokens;
  told.completionTokens += usage.completion_tokens;
  told.words += text.split(' ').length;
}

async function whole(request) {
  const completion = await client.chat.completions.create(request);
  add(completion.usage, completion.choices[0].message.content);
}

async function stream(request) {
  const options = { stream: true, stream_options: { include_usage: true } };
  let text = '';
  let usage = null;
  for await (const chunk of await client.chat.completions.create({ ...request, ...options })) {
    text += chunk.choices[0]?.delta?.content ?? '';
    usage = chunk.usage ?? usage;
  }
  told.streams += 1;
  add(usage, text);
}

async function work(worker) {
  for (let i = 0; i < Number(calls); i++) {
    const messages = [{ role: 'user', content: `Question ${i} of worker ${worker}` }];
    const request = { model: 'gpt-simulated', messages, max_completion_tokens: 100 };
    try {
      await ((worker + i) % 2 ? stream(request) : whole(request));
    } catch (error) {
      told.failures.push({ status: error.status ?? null, type: error.type ?? null, message: String(error.message) });
    }
  }
}

await Promise.all(Array.from({ length: Number(workers) }, (_, worker) => work(worker)));
console.log(JSON.stringify(told));
