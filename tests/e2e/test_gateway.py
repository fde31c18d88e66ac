# SPDX-License-Identifier: MIT
"""Calls through the gateway: what reaches the provider, what comes back, and what is left behind."""

import pytest
from house import a_day, one_provider, slots
from provider import hello


def names(request):
    return [name.lower() for name, _ in request.fields]


def test_get(provider, gateway):
    up = provider(hello)
    credential = {"header": "Authorization", "value": "Bearer s3"}
    gw = gateway(one_provider(up.url + "/api/v1", account={"credential": credential}))
    answer = gw.call("GET", "/a/things?x=1&y=%2F", {"Accept": "text/plain", "Authorization": "Bearer client's"})
    assert (answer.status, answer.reason, answer.body) == (200, "Fine", b"hello\n")
    assert answer["Content-Type"] == "text/plain"
    assert answer["Ration-Waited"] == "0"
    (seen,) = up.requests
    assert (seen.method, seen.target) == ("GET", "/api/v1/things?x=1&y=%2F")
    assert seen["Host"] == f"127.0.0.1:{up.port}"
    assert seen.all("Authorization") == ["Bearer s3"]
    assert seen["Accept"] == "text/plain"


def test_every_request_has_its_own_id(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    with gw.client() as client:
        ids = [client.call("GET", "/a/")["Ration-Request-Id"] for _ in range(3)]
    ids.append(gw.call("GET", "/nobody/")["Ration-Request-Id"])
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    "base, target, seen",
    [
        ("", "/a", "/"),
        ("", "/a?q", "/?q"),
        ("", "/a/", "/"),
        ("/v1", "/a", "/v1"),
        ("/v1/", "/a/x", "/v1/x"),
        ("/v1", "/a?q", "/v1?q"),
        ("/v1", "/a/../b/x", "/v1/../b/x"),
        ("/v1", "/a/%2e%2e/b%2Fx", "/v1/%2e%2e/b%2Fx"),
        ("/v1", "/a//x//", "/v1//x//"),
        ("/v1", "/%61/x", "/v1/x"),
    ],
)
def test_targets_are_kept_as_sent(provider, gateway, base, target, seen):
    up = provider(hello)
    gw = gateway(one_provider(up.url + base))
    assert gw.call("GET", target).status == 200
    assert up.requests[0].target == seen


def test_other_accounts_are_out_of_reach(provider, gateway):
    ours, theirs = provider(hello), provider(hello)
    config = one_provider(ours.url)
    config["providers"].append({"name": "q", "baseUrl": theirs.url})
    config["accounts"].append({"name": "b", "provider": "q"})
    gw = gateway(config)
    for target in ("/a/../b/x", "/a/%2e%2e/b/x", "/a//b/x", "/a/x?/b/", "/a;/b", "/a%2F..%2Fb/x"):
        gw.call("GET", target)
    assert theirs.requests == []


def test_ration_fields_are_read_and_removed(provider, gateway):
    up = provider(hello)
    jobs = [{"name": "nightly", "account": "a", "endpoint": "GET /x", "interval": "24h"}]
    gw = gateway({**one_provider(up.url, endpoints=["/x"]), "jobs": jobs})
    fields = {
        "Ration-Tenant": "t",
        "Ration-Class": "c",
        "Ration-Priority": "high",
        "Ration-Cost": "2.5",
        "Ration-Hold": "5s",
        "ration-timeout": "100",
        "Ration-Retry": "true",
        "Ration-Job": "nightly",
        "Ration-Token": "not needed here",
        "X-Mine": "kept",
    }
    assert gw.call("GET", "/a/", fields).status == 200
    (seen,) = up.requests
    assert not [name for name in names(seen) if name.startswith("ration-")]
    assert seen["X-Mine"] == "kept"


@pytest.mark.parametrize(
    "name, value",
    [
        ("Ration-Cost", "much"),
        ("Ration-Priority", "urgent"),
        ("Ration-Hold", "-1"),
        ("Ration-Timeout", "soon"),
        ("Ration-Retry", "perhaps"),
        ("Ration-Tenant", ""),
        ("Ration-Tennant", "t"),
    ],
)
def test_bad_ration_field(provider, gateway, name, value):
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    answer = gw.call("GET", "/a/", {name: value})
    assert answer.status == 400
    assert answer["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["field"] == name
    assert name in problem["detail"]
    assert problem["requestId"] == answer["Ration-Request-Id"]
    assert up.requests == []


def test_hop_by_hop_fields_end_here(provider, gateway):
    def handler(request, connection):
        fields = {"Connection": "keep-alive, X-Theirs", "X-Theirs": "hop", "Keep-Alive": "timeout=5", "X-End": "end"}
        connection.reply(200, fields, "x")

    up = provider(handler)
    gw = gateway(one_provider(up.url))
    sent = {
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "Keep-Alive": "timeout=9",
        "TE": "trailers",
        "Proxy-Authorization": "Basic eDp5",
        "Proxy-Connection": "keep-alive",
        "X-End": "end",
    }
    answer = gw.call("GET", "/a/", sent)
    gone = {"x-hop", "keep-alive", "te", "proxy-authorization", "proxy-connection"}
    assert not gone & set(names(up.requests[0]))
    assert up.requests[0]["X-End"] == "end"
    assert answer["X-Theirs"] is None and answer["Keep-Alive"] is None and answer["X-End"] == "end"


def test_a_connection_field_cannot_remove_the_credential(provider, gateway):
    up = provider(hello)
    gw = gateway(one_provider(up.url, account={"credential": {"header": "X-Key", "value": "s3"}}))
    gw.call("GET", "/a/", {"Connection": "X-Key", "X-Key": "mine"})
    assert up.requests[0].all("X-Key") == ["s3"]


@pytest.mark.parametrize("status", [200, 204, 304, 404, 500])
def test_statuses(provider, gateway, status):
    body = b"" if status in (204, 304) else b"body"
    up = provider(lambda request, connection: connection.reply(status, {"ETag": '"x"'}, body))
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        for _ in range(2):
            answer = client.call("GET", "/a/")
            assert (answer.status, answer.body, answer["ETag"]) == (status, body, '"x"')


def test_head(provider, gateway):
    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url))
    with gw.client() as client:
        for _ in range(2):
            answer = client.call("HEAD", "/a/")
            assert (answer.status, answer["Content-Length"], answer.body) == (200, "1234", b"")


def test_interim_responses_are_skipped(provider, gateway):
    def handler(request, connection):
        connection.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        connection.reply(200, {}, "x")

    gw = gateway(one_provider(provider(handler).url))
    assert gw.call("GET", "/a/").body == b"x"


def test_body_with_a_length(provider, gateway):
    bodies = []

    def handler(request, connection):
        bodies.append(request.body())
        connection.reply(200, {}, "x")

    up = provider(handler)
    gw = gateway(one_provider(up.url))
    body = bytes(range(256)) * 4096
    assert gw.call("POST", "/a/", {}, body).status == 200
    assert bodies == [body]
    assert up.requests[0]["Content-Length"] == str(len(body))


def test_an_empty_post_says_so(provider, gateway):
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    assert gw.call("POST", "/a/", {}, b"").status == 200
    assert up.requests[0]["Content-Length"] == "0"


def test_chunked_both_ways_with_trailers(provider, gateway):
    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        for piece in request.pieces():
            connection.chunk(piece.upper())
        connection.send(f"0\r\nX-Sum: {dict(request.trailers)['X-In']}\r\n\r\n")

    up = provider(handler)
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        client.send("POST /a/ HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send("3\r\nabc\r\n")
        status, _, _ = client.head()
        assert status == 200
        assert client.chunk() == b"ABC"
        client.send("2\r\nde\r\n0\r\nX-In: 5\r\nRation-Tenant: no\r\n\r\n")
        assert client.chunk() == b"DE"
        assert client.chunk() == b""
        assert dict(client.section()) == {"X-Sum": "5"}
    assert dict(up.requests[0].trailers) == {"X-In": "5"}


def test_a_body_until_close_is_framed_anew(provider, gateway):
    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
        return False

    gw = gateway(one_provider(provider(handler).url))
    with gw.client() as client:
        for _ in range(2):
            assert client.call("GET", "/a/").body == b"all of it"


def test_http_1_0_client(provider, gateway):
    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.chunk("abc")
        connection.send("0\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url))
    with gw.client() as client:
        answer = client.send("GET /a/ HTTP/1.0\r\n\r\n").answer()
        assert (answer.status, answer.body, answer["Transfer-Encoding"]) == (200, b"abc", None)


def test_redirects_are_not_followed(provider, gateway):
    up = provider(lambda request, connection: connection.reply(302, {"Location": "http://elsewhere.example/"}))
    gw = gateway(one_provider(up.url))
    answer = gw.call("GET", "/a/")
    assert (answer.status, answer["Location"]) == (302, "http://elsewhere.example/")
    assert len(up.requests) == 1


def test_connections_are_kept_on_both_sides(provider, gateway):
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        for _ in range(20):
            assert client.call("GET", "/a/").status == 200
    assert up.connections == 1
    assert gw.status()["upstream"]["reuses"] == 19


def test_a_stale_connection_is_replaced(provider, gateway):
    """The provider closes a kept connection when the second request has reached it: sent again on a fresh one."""
    served = []

    def handler(request, connection):
        served.append(request)
        if len(served) == 2:
            return False
        connection.reply(200, {}, "x")
        return None

    up = provider(handler)
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        assert client.call("GET", "/a/").status == 200
        assert client.call("GET", "/a/").status == 200
    assert (up.connections, len(served)) == (2, 3)
    assert gw.status()["upstream"]["stale"] == 1


def test_what_may_not_be_repeated_is_not(provider, gateway):
    served = []

    def handler(request, connection):
        served.append(request)
        if len(served) == 2:
            return False
        request.body()
        connection.reply(200, {}, "x")
        return None

    gw = gateway(one_provider(provider(handler).url))
    with gw.client() as client:
        assert client.call("POST", "/a/", {}, b"x").status == 200
        answer = client.call("POST", "/a/", {}, b"x")
    assert (answer.status, answer.json()["type"]) == (502, "urn:ration:problem:upstream_broken")
    assert len(served) == 2


def test_pipelined_requests_are_answered_in_order(provider, gateway):
    up = provider(lambda request, connection: connection.reply(200, {}, request.target))
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        client.send("".join(f"GET /a/{i} HTTP/1.1\r\nHost: g\r\n\r\n" for i in range(10)))
        assert [client.answer().body for _ in range(10)] == [b"/%d" % i for i in range(10)]


@pytest.mark.parametrize(
    "request_line, status",
    [
        ("TRACE /a/", 501),
        ("GET http://provider.example/a/", 400),
        ("OPTIONS *", 400),
        ("GET /", 400),
        ("GET //a/x", 400),
        ("GET /%zz/x", 404),
        ("GET /nobody/x", 404),
    ],
)
def test_targets_that_are_refused(provider, gateway, request_line, status):
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        answer = client.send(f"{request_line} HTTP/1.1\r\nHost: g\r\n\r\n").answer()
    assert answer.status == status
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert up.requests == []


def test_connect_is_not_implemented(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    with gw.client() as client:
        assert client.send("CONNECT provider.example:443 HTTP/1.1\r\nHost: g\r\n\r\n").answer().status == 501


def test_upgrades_are_not_implemented(provider, gateway):
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    answer = gw.call("GET", "/a/", {"Connection": "Upgrade", "Upgrade": "websocket"})
    assert answer.status == 501
    assert up.requests == []


def test_an_offer_of_http_2_is_passed_over(provider, gateway):
    """Java's client makes it with every request (RFC 9110, 7.8)."""
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    fields = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}
    assert gw.call("GET", "/a/", fields).status == 200
    assert not {"upgrade", "http2-settings", "connection"} & set(names(up.requests[0]))


@pytest.mark.parametrize(
    "data",
    [
        b"rubbish\r\n\r\n",
        b"GET /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: x\r\n\r\n",
        b"GET /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /a/ HTTP/1.1\r\nHost: g\r\nX: a\r\n folded\r\n\r\n",
        b"GET /a/ HTTP/1.1\r\nHost: g\r\nX: a\rb\r\n\r\n",
        b"GET /a/ HTTP/1.1\r\nHost : g\r\n\r\n",
        b"GET /a/ HTTP/1.1\r\nHost: g\r\nX: \0\r\n\r\n",
        b"GET /a/ HTTP/3.0\r\nHost: g\r\n\r\n",
        b"GET /a/\xff HTTP/1.1\r\nHost: g\r\n\r\n",
    ],
)
def test_malformed_requests(provider, gateway, data):
    up = provider(hello)
    gw = gateway(one_provider(up.url))
    with gw.client() as client:
        assert client.send(data).answer().status in (400, 505)
    assert up.requests == []
    gw.until_idle()


def test_a_head_that_is_too_large(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    with gw.client() as client:
        answer = client.send(b"GET /a/ HTTP/1.1\r\nHost: g\r\nX: " + b"x" * 70000 + b"\r\n\r\n").answer()
        assert answer.status == 431


def test_a_malformed_body_ends_the_call(provider, gateway):
    """The lease goes back although neither side has ended its message."""
    up = provider(lambda request, connection: request.body())
    gw = gateway(one_provider(up.url, [slots(1)]))
    with gw.client() as client:
        client.send("POST /a/ HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        gw.until(lambda s: s["held"] == 1, "the call runs")
        client.send("zz\r\n")
        gw.until_idle()


def test_a_response_before_the_request_has_ended(provider, gateway):
    """A provider that says no without reading the body."""

    def handler(request, connection):
        connection.reply(413, {"Connection": "close"}, "too large")
        connection.closed()
        return False

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    with gw.client() as client:
        client.send("POST /a/ HTTP/1.1\r\nHost: g\r\nContent-Length: 1000000\r\n\r\n" + "x" * 1000)
        answer = client.answer()
        assert (answer.status, answer.body) == (413, b"too large")
    gw.until_idle()


def test_endpoint_templates_see_the_path_after_the_account(provider, gateway):
    limit = {
        "name": "per-org",
        "kind": "quota",
        "max": 1,
        "window": a_day(),
        "scope": {"by": ["var:org"]},
    }
    up = provider(hello)
    gw = gateway(one_provider(up.url + "/v1", [limit], endpoints=["/orgs/{org}/**"]))
    assert gw.call("GET", "/a/orgs/7/x").status == 200
    answer = gw.call("GET", "/a/orgs/7/y")
    assert (answer.status, answer.json()["key"]) == (429, "org=7")
    assert gw.call("GET", "/a/orgs/8/x").status == 200


def test_many_requests_at_once_on_one_connection(provider, gateway):
    """Their answers are more than a connection queues, so some requests must wait for others' to be sent."""
    gw = gateway(one_provider(provider(hello).url))
    with gw.client() as client:
        client.send("GET /nobody/x HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
        ids = [client.answer("GET")["Ration-Request-Id"] for _ in range(500)]
    assert len(set(ids)) == 500
