# SPDX-License-Identifier: MIT
"""Tools that are not ours on both sides: curl here, nginx over TLS and python's http.server there."""

import shutil
import socket
import subprocess
import sys
import threading

import pytest
from house import DEADLINE, free_port, one_provider, slots, until
from provider import hello

CURL = shutil.which("curl")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(CURL is None, reason="no curl")


def curl(*arguments, data=None):
    """Standard output of curl, which must succeed; with -v standard error, where the heads are."""
    done = subprocess.run([CURL, "-sS", "--max-time", "120", *arguments], input=data, capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stderr if "-v" in arguments else done.stdout


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


NGINX_CONF = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log; client_max_body_size 0; client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    server {{
        listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/good.pem; ssl_certificate_key {folder}/good.key;
        root {folder}/www;
        location /files/ {{ dav_methods PUT DELETE; client_body_in_file_only clean; create_full_put_path on; }}
        location = /empty {{ return 204; }}
        location = /moved {{ return 302 /elsewhere; }}
    }}
}}
"""


@pytest.fixture
def nginx(tmp_path):
    if NGINX is None:
        pytest.skip("no nginx")
    port = free_port()
    (tmp_path / "www" / "files").mkdir(parents=True)
    (tmp_path / "www" / "index.txt").write_text("from nginx\n" * 1000)
    (tmp_path / "nginx.conf").write_text(NGINX_CONF.format(folder=tmp_path, port=port))
    for arguments in (
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem"],
        ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=good",
         "-keyout", "good.key", "-out", "good.csr"],
        ["x509", "-req", "-in", "good.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
         "-extfile", "good.ext", "-out", "good.pem"],
    ):  # fmt: skip
        (tmp_path / "good.ext").write_text("subjectAltName=DNS:localhost\n")
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)
    for folder in (tmp_path, tmp_path / "www", tmp_path / "www" / "files"):
        folder.chmod(0o777)
    process = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "user root;"],
                               stderr=subprocess.DEVNULL)  # fmt: skip
    until(lambda: listens(port), "nginx listens")
    yield f"https://localhost:{port}", tmp_path
    process.terminate()
    process.wait(DEADLINE)


def test_nginx_over_tls(nginx, gateway, tmp_path):
    url, folder = nginx
    gw = gateway(one_provider(url, [slots(4)], tls={"ca": str(folder / "ca.pem")}))
    base = f"http://127.0.0.1:{gw.port}/a"
    assert curl(f"{base}/index.txt") == b"from nginx\n" * 1000
    head = curl("-I", f"{base}/index.txt").decode()
    assert head.startswith("HTTP/1.1 200 OK\r\n") and "Content-Length: 11000\r\n" in head
    assert curl("-o", "/dev/null", "-w", "%{http_code}", f"{base}/empty") == b"204"
    assert curl("-o", "/dev/null", "-w", "%{http_code}", f"{base}/nothing") == b"404"
    assert curl("-w", "%{http_code} %{redirect_url}", "-o", "/dev/null", f"{base}/moved").startswith(b"302 ")
    etag = [line for line in head.splitlines() if line.startswith("ETag")][0].partition(": ")[2]
    assert curl("-o", "/dev/null", "-w", "%{http_code}", "-H", f"If-None-Match: {etag}", f"{base}/index.txt") == b"304"
    assert curl("-r", "5-9", f"{base}/index.txt") == b"nginx"
    gw.until_idle()
    assert gw.status()["upstream"]["connects"] == 1


def test_100_mib_to_nginx(nginx, gateway, tmp_path):
    """PUT with `Expect: 100-continue` and a length, then chunked; what nginx has stored comes back as it was."""
    url, folder = nginx
    gw = gateway(one_provider(url, [slots(1)], tls={"ca": str(folder / "ca.pem")}))
    base = f"http://127.0.0.1:{gw.port}/a/files"
    big = tmp_path / "big"
    with open(big, "wb") as file:
        for i in range(100):
            file.write(bytes([i]) * (1 << 20))
    heads = curl("-v", "-T", str(big), "-H", "Expect: 100-continue", f"{base}/sized")
    assert b"< HTTP/1.1 100 Continue" in heads and b"< HTTP/1.1 201 Created" in heads
    curl("-T", "-", "-H", "Transfer-Encoding: chunked", f"{base}/chunked", data=big.read_bytes())
    for name in ("sized", "chunked"):
        assert (folder / "www" / "files" / name).read_bytes() == big.read_bytes()
    curl("-o", str(tmp_path / "back"), f"{base}/sized")
    assert (tmp_path / "back").read_bytes() == big.read_bytes()
    gw.until_idle()


def test_post_100_mib(provider, gateway, tmp_path):
    sizes = []

    def handler(request, connection):
        sizes.append(sum(len(piece) for piece in request.pieces()))
        connection.reply(200, {}, str(sizes[-1]))

    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.truncate(100 << 20)
    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    url = f"http://127.0.0.1:{gw.port}/a/"
    answer = curl("-X", "POST", "--data-binary", f"@{big}", "-H", "Expect: 100-continue", url)
    assert answer == str(100 << 20).encode()
    gw.until_idle()


def test_python_http_server(gateway, tmp_path):
    (tmp_path / "x.txt").write_text("from python\n")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(tmp_path), str(port)],
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: listens(port), "http.server listens")
        gw = gateway(one_provider(f"http://localhost:{port}", [slots(2)]))
        base = f"http://127.0.0.1:{gw.port}/a"
        assert curl(f"{base}/x.txt", f"{base}/x.txt") == b"from python\n" * 2
        assert curl("-I", f"{base}/x.txt").startswith(b"HTTP/1.1 200 OK\r\n")
        assert curl("-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-d", "x=1", f"{base}/") == b"501"
        gw.until_idle()
    finally:
        process.terminate()
        process.wait(DEADLINE)


@pytest.mark.parametrize("moment", ["waiting", "streaming"])
def test_curl_killed(provider, gateway, moment):
    go = threading.Event()

    def handler(request, connection):
        connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.chunk("x")
        go.wait(60)
        connection.chunk("x")
        connection.send("0\r\n\r\n")

    gw = gateway(one_provider(provider(handler).url, [slots(1)]))
    url = f"http://127.0.0.1:{gw.port}/a/"
    processes = [subprocess.Popen([CURL, "-sN", url], stdout=subprocess.PIPE)]
    assert processes[0].stdout.read(1) == b"x"
    if moment == "waiting":
        processes.append(subprocess.Popen([CURL, "-s", url], stdout=subprocess.DEVNULL))
        gw.until(lambda s: s["waiting"] == 1, "the second one waits")
    processes[-1].kill()
    if moment == "waiting":
        gw.until(lambda s: s["waiting"] == 0 and s["held"] == 1, "its waiter is gone")
        go.set()
        assert processes[0].wait(DEADLINE) == 0
    for process in processes:
        process.wait(DEADLINE)
        if process.stdout is not None:
            process.stdout.close()
    gw.until_idle()


def test_curl_shows_a_refusal(provider, gateway):
    gw = gateway(one_provider(provider(hello).url))
    shown = curl("-i", f"http://127.0.0.1:{gw.port}/nobody/x").decode()
    assert shown.startswith("HTTP/1.1 404 Not Found\r\n")
    assert "Ration-Refused: unknown_account\r\n" in shown
