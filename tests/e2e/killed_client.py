# SPDX-License-Identifier: MIT
"""A client process that is going to be killed: PORT COUNT; so many connections, each with a call at another stage.

Standard library without site packages, so that it starts quickly. It writes a line when all of it has been sent.
"""

import json
import socket
import sys
import time

port, count = int(sys.argv[1]), int(sys.argv[2])
body = json.dumps({
    "model": "m", "messages": [{"role": "user", "content": "x"}], "max_completion_tokens": 60, "stream": True,
}).encode()
head = f"POST /a/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n\r\n".encode()
connections = []
for i in range(count):
    connections.append(socket.create_connection(("127.0.0.1", port)))
    sent = head + body
    connections[-1].sendall(sent[:len(head) // 2] if i % 4 == 0 else sent[:-10] if i % 4 == 1 else sent)
print("sent", flush=True)
time.sleep(60)
