-- SPDX-License-Identifier: MIT
-- A ledger as version 1 leaves it, with something of everything. Whoever changes the tables must still read it.
PRAGMA application_id = 1918989422;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE meta (
  name TEXT NOT NULL PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('clean',1);
INSERT INTO meta VALUES('closed_at',1796040001500000);
INSERT INTO meta VALUES('opened_at',1796040000000000);
INSERT INTO meta VALUES('pid',4711);
INSERT INTO meta VALUES('salt',X'5a175a175a175a175a175a175a175a175a175a175a175a175a175a175a175a17');
INSERT INTO meta VALUES('version','0.1.0');
CREATE TABLE quotas ( -- instants and spans in microseconds, amounts in millionths
  provider TEXT NOT NULL,
  limit_name TEXT NOT NULL,
  scope_key TEXT NOT NULL,
  window_start INTEGER NOT NULL, -- 0 where the window is a rolling one
  id INTEGER NOT NULL UNIQUE, -- quota_id in quota_parts and quota_timeline
  window_end INTEGER NOT NULL,
  rolling INTEGER NOT NULL, -- the length of a rolling window
  window_offset INTEGER NOT NULL, -- how far the end is from the calendar's
  used INTEGER NOT NULL,
  mark INTEGER, -- durability strict: what counts as used after a crash
  carried INTEGER NOT NULL,
  in_flight INTEGER NOT NULL,
  observed_remaining INTEGER,
  remaining_until INTEGER,
  observed_max INTEGER,
  external INTEGER NOT NULL,
  exhausted INTEGER NOT NULL,
  exhausted_until INTEGER,
  dipped_at INTEGER,
  moved_at INTEGER,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, limit_name, scope_key, window_start)
) STRICT, WITHOUT ROWID;
INSERT INTO quotas VALUES('openai','hourly','say "hi", ' || char(27) || '[31mred' || char(27) || '[0m' || char(13,
   10) || 'bye',0,2,0,3600000000,0,1000000,NULL,0,0,NULL,NULL,NULL,0,0,NULL,NULL,NULL,1796040000000000);
INSERT INTO quotas VALUES('openai','rpd','/user=7',1795996800000000,1,1796083200000000,0,0,4000000,10000000,0,0,
  995500000,NULL,1000000000,500000,1,1796083200000000,NULL,NULL,1796040000000000);
CREATE TABLE quota_parts ( -- granted at or before an instant, and after that of the part before
  last INTEGER NOT NULL,
  quota_id INTEGER NOT NULL,
  units INTEGER NOT NULL,
  PRIMARY KEY (last, quota_id)
) STRICT, WITHOUT ROWID;
INSERT INTO quota_parts VALUES(1796000400000000,1,2500000);
INSERT INTO quota_parts VALUES(1796039940000000,1,1500000);
CREATE TABLE quota_timeline ( -- the same, of this window and the one before, for reports
  last INTEGER NOT NULL,
  quota_id INTEGER NOT NULL,
  units INTEGER NOT NULL,
  PRIMARY KEY (last, quota_id)
) STRICT, WITHOUT ROWID;
INSERT INTO quota_timeline VALUES(1795993140000000,1,3000000);
INSERT INTO quota_timeline VALUES(1796000400000000,1,2500000);
INSERT INTO quota_timeline VALUES(1796039940000000,1,1500000);
CREATE TABLE buckets (
  provider TEXT NOT NULL,
  limit_name TEXT NOT NULL,
  scope_key TEXT NOT NULL,
  available INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, limit_name, scope_key)
) STRICT, WITHOUT ROWID;
INSERT INTO buckets VALUES('openai','slow','',-250000,1796040000000000);
CREATE TABLE adaptive (
  provider TEXT NOT NULL,
  limit_name TEXT NOT NULL,
  scope_key TEXT NOT NULL,
  current INTEGER NOT NULL,
  grown_at INTEGER NOT NULL,
  throttled_at INTEGER,
  decreased_at INTEGER,
  stride INTEGER NOT NULL,
  climb_to INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, limit_name, scope_key)
) STRICT, WITHOUT ROWID;
INSERT INTO adaptive VALUES('openai','at-once','main',12,1796040000000000,1796039999000000,1796039999500000,2,0,
  1796040000000000);
CREATE TABLE penalties (
  provider TEXT NOT NULL,
  limit_name TEXT NOT NULL, -- '' where it is the account's; then scope_key is the account
  scope_key TEXT NOT NULL,
  began INTEGER NOT NULL,
  until INTEGER NOT NULL,
  doublings INTEGER NOT NULL,
  events INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, limit_name, scope_key)
) STRICT, WITHOUT ROWID;
INSERT INTO penalties VALUES('openai','','main',1796040000000000,1796040002000000,0,1,1796040000000000);
INSERT INTO penalties VALUES('openai','rpd','/user=7',1796040000000000,1796040030500000,1,2,1796040000000000);
CREATE TABLE breakers (
  provider TEXT NOT NULL,
  scope_key TEXT NOT NULL,
  state TEXT NOT NULL, -- closed, open or half-open
  generation INTEGER NOT NULL,
  until INTEGER,
  delay INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, scope_key)
) STRICT, WITHOUT ROWID;
INSERT INTO breakers VALUES('openai','main','open',3,1796040005000000,5000000,1796040000000000);
CREATE TABLE pauses (
  provider TEXT NOT NULL,
  limit_name TEXT NOT NULL,
  scope_key TEXT NOT NULL,
  paused INTEGER NOT NULL, -- 0: an operator has resumed it
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, limit_name, scope_key)
) STRICT, WITHOUT ROWID;
INSERT INTO pauses VALUES('openai','rpd','/user=8',1,1796040000000000);
INSERT INTO pauses VALUES('openai','rpd','/user=9',0,1796040000000000);
CREATE TABLE runs ( -- of each job the last 20
  job TEXT NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  fan_out INTEGER NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
INSERT INTO runs VALUES('sync-meraki',0,1796036400000000,120,3,40);
COMMIT;
