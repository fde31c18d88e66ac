# SPDX-License-Identifier: MIT
"""`ration simulate --shape openai`: chats as OpenAI's API answers them, as a plain client sees them."""

import json

import pytest
from house import a_day
from simulated import Client, simulator, wait_until

CONFIG = """
providers:
  - use: openai
    limits:
      - { name: requests, initialMax: 1000, window: { period: day, resetAt: "%s" } }
      - { name: tokens, initialMax: %d, window: { period: day, resetAt: "%s" } }
      - { name: slots, kind: concurrency, max: %d, scope: { by: [account] } }
accounts:
  - { name: a, provider: openai, credential: { header: Authorization, value: Bearer secret-1 } }
"""
DAY = a_day()["resetAt"]
ASK = {"model": "gpt-simulated", "messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 40}
PATH = "/v1/chat/completions"


def provider(tmp_path, *options, tokens=100000, slots=10):
    return simulator(tmp_path, CONFIG % (DAY, tokens, DAY, slots), "--shape", "openai", *options)


def chat(client, path=PATH, **more):
    return client.call(path, "POST", json.dumps({**ASK, **more}))


def events(answer):
    """What a stream told; its end is checked."""
    parts = answer.body.decode().split("\n\n")
    assert parts[-2:] == ["data: [DONE]", ""]
    return [json.loads(part.removeprefix("data: ")) for part in parts[:-2]]


def test_an_answer_whole(tmp_path):
    with provider(tmp_path) as port:
        client = Client(port)
        answer = chat(client)
        told = answer.json()
        counts = client.counts()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert (told["object"], told["model"]) == ("chat.completion", "gpt-simulated")
    usage = told["usage"]
    assert 1 <= usage["completion_tokens"] <= 40
    assert usage["completion_tokens"] == len(told["choices"][0]["message"]["content"].split())
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert int(answer.headers["x-ratelimit-remaining-requests"]) == 999
    assert int(answer.headers["x-ratelimit-remaining-tokens"]) == 100000 - usage["total_tokens"]
    assert answer.headers["x-ratelimit-reset-tokens"].endswith("s")
    assert counts["usage"] == {"promptTokens": usage["prompt_tokens"], "completionTokens": usage["completion_tokens"],
                               "totalTokens": usage["total_tokens"]}


@pytest.mark.parametrize("asked", [True, False])
def test_a_stream(tmp_path, asked):
    """The same call says the same, whole and streamed; usage is told where it was asked for, and counted anyway."""
    more = {"stream_options": {"include_usage": True}} if asked else {}
    with provider(tmp_path, "--latency", "50ms") as port:
        client = Client(port)
        answer = chat(client, stream=True, **more)
        counts = client.counts()
    with provider(tmp_path) as port:
        whole = chat(Client(port)).json()
    chunks = events(answer)
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    text = "".join(choice["delta"].get("content", "") for choice in choices)
    assert text == whole["choices"][0]["message"]["content"]
    assert choices[-1]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert [chunk["usage"] for chunk in chunks if chunk.get("usage")] == ([whole["usage"]] if asked else [])
    assert counts["usage"]["totalTokens"] == whole["usage"]["total_tokens"]
    assert (counts["ok"], counts["inFlight"]) == (1, 0)


@pytest.mark.parametrize("method, path, key, body, status, code", [
    ("POST", PATH, "wrong", ASK, 401, "invalid_api_key"),
    ("POST", PATH, None, ASK, 401, "invalid_api_key"),
    ("GET", PATH, "secret-1", None, 404, "unknown_url"),
    ("POST", "/v1/embeddings", "secret-1", ASK, 404, "unknown_url"),
    ("POST", PATH, "secret-1", {**ASK, "messages": []}, 400, None),
    ("POST", PATH, "secret-1", "x" * (5 << 20), 400, None),
], ids=["key", "no-key", "method", "path", "body", "size"])
def test_what_is_turned_away(tmp_path, method, path, key, body, status, code):
    with provider(tmp_path) as port:
        answer = Client(port, key).call(path, method, body and json.dumps(body))
        counts = Client(port).counts()
    assert answer.status == status
    error = answer.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, None)
    assert (counts["requests"], counts["rejected"], counts["usage"]["totalTokens"]) == (1, 1, 0)


def test_too_many(tmp_path):
    """By tokens, and by calls at once."""
    with provider(tmp_path, tokens=60) as port:
        client = Client(port)
        answers = [chat(client) for _ in range(12)]
        refused = next(answer for answer in answers if answer.status != 200)
        error = refused.json()["error"]
        used = sum(answer.json()["usage"]["total_tokens"] for answer in answers if answer.status == 200)
        assert refused.status == 429 and int(refused.headers["Retry-After"]) > 0
        assert (error["type"], error["code"]) == ("tokens", "rate_limit_exceeded")
        assert client.counts()["usage"]["totalTokens"] == used
    with provider(tmp_path, "--latency", "10m", slots=1) as port:
        first = Client(port)
        first.send(PATH, "POST", json.dumps(ASK))
        second = Client(port)
        wait_until(lambda: second.counts()["inFlight"] == 1)
        assert chat(second).json()["error"]["type"] == "requests"


def test_errors(tmp_path):
    with provider(tmp_path, "--errors", "100%") as port:
        client = Client(port)
        answer = chat(client, stream=True)
        assert answer.status in (500, 502, 503, 504)
        assert answer.json()["error"]["type"] == "server_error"
        assert client.counts()["usage"]["totalTokens"] == 0


@pytest.mark.parametrize("moment", ["body", "wait", "stream"])
def test_clients_that_leave(tmp_path, moment):
    """The slot comes back, and what was not told is not counted as used."""
    with provider(tmp_path, "--latency", "10m" if moment == "wait" else "4s", slots=1) as port:
        watcher, client = Client(port), Client(port)
        body = json.dumps({**ASK, "stream": True})
        if moment == "body":
            client.connection.putrequest("POST", PATH)
            client.connection.putheader("Content-Length", str(len(body)))
            client.connection.endheaders(body[:20].encode())
            wait_until(lambda: watcher.counts()["requests"] == 1)
        else:
            client.send(PATH, "POST", body)
            wait_until(lambda: watcher.counts()["inFlight"] == 1)
        if moment == "stream":
            assert client.connection.getresponse().read(40).startswith(b'data: {"id"')
        client.connection.close()
        wait_until(lambda: watcher.counts()["gone"] == 1)
        counts = watcher.counts()
        assert (counts["inFlight"], counts["usage"]["totalTokens"]) == (0, 0)
