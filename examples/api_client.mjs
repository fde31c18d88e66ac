#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// Calls under leases of the decision API, with Node's standard library alone.
//
// usage: api_client.mjs ACCOUNT URL [COUNT] [CONTROL]
//
// COUNT calls at once, each waiting up to 30 s for its lease. CONTROL is http://127.0.0.1:7601 or unix:PATH.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';

// A decision: `why` has its reason, and retryAfterMs where the time to ask again is known.
export class Refused extends Error {
  constructor(why) {
    super(`${why.reason ?? why.type}: ${why.detail}`);
    this.why = why;
  }
}

// One exchange: status, fields as a list of pairs, body as text.
function exchange(url, options, body) {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, options, (response) => {
      const pieces = [];
      response.on('data', (piece) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        const fields = [];
        for (let i = 0; i < response.rawHeaders.length; i += 2)
          fields.push([response.rawHeaders[i], response.rawHeaders[i + 1]]);
        resolve({ status: response.statusCode, fields, body: Buffer.concat(pieces).toString() });
      });
    });
    request.on('timeout', () => request.destroy(new Error('timed out')));
    request.on('error', reject);
    request.end(body);
  });
}

export class Ration {
  constructor(control = 'http://127.0.0.1:7601', token = undefined) {
    this.socket = control.startsWith('unix:') ? control.slice(5) : undefined;
    this.base = this.socket ? 'http://localhost' : control;
    this.token = token;
  }

  async ask(operation, body, timeoutMs = 10000, headers = {}) {
    const text = JSON.stringify(body);
    const answer = await exchange(new URL(`/v1/${operation}`, this.base), {
      method: 'POST',
      socketPath: this.socket,
      timeout: timeoutMs,
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(text),
        ...(this.token ? { Authorization: `Bearer ${this.token}` } : {}),
        ...headers,
      },
    }, text);
    const told = JSON.parse(answer.body);
    if (answer.status !== 200) throw new Refused(told);
    return told;
  }

  // Run `work` under a lease, which is renewed while it lasts. What `work` returns tells how the call ended:
  // { status, headers, cost }.
  async lease(asked, work, timeoutMs = 30000) {
    // The same key on every attempt: an answer that was lost on the way costs no second lease.
    const key = { 'Idempotency-Key': randomUUID() };
    let granted;
    for (let attempt = 0; granted === undefined; attempt++) {
      try {
        granted = await this.ask('acquire', { timeout: timeoutMs, ...asked }, timeoutMs + 10000, key);
      } catch (error) {
        if (error instanceof Refused || attempt === 2) throw error;
      }
    }
    const lease = granted.lease;
    const renewer = setInterval(() => {
      // One that was lost is asked again in time; of one that was taken back the release will tell.
      this.ask('renew', { lease }).catch(() => {});
    }, granted.ttlMs / 3);
    let told = { outcome: 'failure' };
    try {
      told = { outcome: 'success', ...(await work(lease)) };
      return told;
    } finally {
      clearInterval(renewer);
      await this.ask('release', { lease, ...told });
    }
  }
}

// The release wants a field that occurs twice as a list.
function collected(fields) {
  const headers = {};
  for (const [name, value] of fields)
    headers[name] = name in headers ? [headers[name], value].flat() : value;
  return headers;
}

// GET under a lease; the provider's status.
async function call(ration, account, url) {
  const told = await ration.lease({ account, method: 'GET', path: url.pathname }, async () => {
    const answer = await exchange(url, { timeout: 30000 });
    return { status: answer.status, headers: collected(answer.fields) };
  });
  return told.status;
}

async function main(account, url, count = '1', control = undefined) {
  const ration = new Ration(control);
  const results = await Promise.all(Array.from({ length: Number(count) }, async () => {
    try {
      return String(await call(ration, account, new URL(url)));
    } catch (error) {
      if (error instanceof Refused) return error.why.reason ?? 'error';
      throw error;
    }
  }));
  for (const result of [...new Set(results)].sort())
    console.log(`${results.filter((one) => one === result).length} x ${result}`);
}

if (process.argv.length < 4) {
  console.error('usage: api_client.mjs ACCOUNT URL [COUNT] [CONTROL]');
  process.exit(2);
}
await main(...process.argv.slice(2));
