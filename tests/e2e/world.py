# SPDX-License-Identifier: MIT
"""A gateway with a limit of every kind, jobs, and traffic of several tenants: what the dashboard is shown on."""

import threading
import time

from house import a_day

BY_ACCOUNT = {"scope": {"by": ["account"]}}
BY_TENANT = {"scope": {"by": ["account", "tenant"]}}


def config(url, **settings):
    """Two accounts of one provider; `settings` are more of them."""
    limits = [
        {"name": "calls", "kind": "rate", "rate": "20/s", "burst": 10, **BY_ACCOUNT},
        {"name": "per-tenant", "kind": "rate", "rate": "600/1m", "burst": 100, **BY_TENANT},
        {"name": "at-once", "kind": "concurrency", "max": 8, **BY_ACCOUNT},
        {"name": "daily", "kind": "quota", "max": 20000, **BY_ACCOUNT,
         "window": a_day("America/New_York")},
        {"name": "in-flight", "kind": "share", "ceiling": 6, "counts": "requests",
         "reclaimHorizon": "2s", "idleAfter": "3s", "tenants": {"web": 2, "reports": 1, "batch": 1}, **BY_ACCOUNT},
        {"name": "width", "kind": "adaptive", "initialLimit": 8, "maxLimit": 20, **BY_ACCOUNT},
    ]
    jobs = [
        {"name": "prices", "account": "shop", "endpoint": "GET /prices", "interval": "5s", "priority": "critical"},
        {"name": "orders", "account": "shop", "endpoint": "GET /orders", "interval": "10s"},
        {"name": "backfill", "account": "shop", "endpoint": "GET /items", "interval": "2s", "priority": "low"},
    ]
    return {
        "settings": {"ledger": {"path": "none"}, "instance": "demo", **settings},
        "tenants": {"web": 2, "reports": 1, "batch": 1},
        "providers": [{"name": "storefront", "baseUrl": url, "limits": limits,
                       "endpoints": ["/prices", "/orders", "/items"]}],
        "accounts": [{"name": "shop", "provider": "storefront"}, {"name": "outlet", "provider": "storefront"}],
        "jobs": jobs,
    }


class Traffic:
    """Clients that call one after the other until they are told to stop."""

    STREAMS = [
        ("shop", "web", "high", "/prices", 3), ("shop", "reports", "normal", "/orders", 3),
        ("shop", "batch", "low", "/items", 6), ("outlet", "web", "critical", "/prices", 1),
    ]

    def __init__(self, gw):
        self.gw, self.over = gw, threading.Event()
        self.threads = [
            threading.Thread(target=self.call, args=stream[:-1], daemon=True)
            for stream in self.STREAMS for _ in range(stream[-1])
        ]
        for thread in self.threads:
            thread.start()

    def call(self, account, tenant, priority, path):
        fields = {"Ration-Tenant": tenant, "Ration-Priority": priority, "Ration-Timeout": "2s"}
        while not self.over.is_set():
            try:
                self.gw.call("GET", f"/{account}{path}", fields)
            except OSError:
                time.sleep(0.05)
            time.sleep(0.02)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(30)


class Moody:
    """Takes 60 ms for a call, and says "too many" to one in so many."""

    def __init__(self, one_in=0):
        self.one_in, self.count, self.lock = one_in, 0, threading.Lock()

    def __call__(self, request, connection):
        request.body()
        with self.lock:
            self.count += 1
            too_many = self.one_in > 0 and self.count % self.one_in == 0
        time.sleep(0.06)
        if too_many:
            connection.reply(429, {"Retry-After": "1"}, b"slow down")
        else:
            connection.reply(200, {}, b"fine")
