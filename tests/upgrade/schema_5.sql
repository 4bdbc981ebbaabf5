-- A file that release 0.1 wrote, with schema 5: tests open it.
PRAGMA page_size = 8192;
BEGIN;
CREATE TABLE settings (
            name TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
CREATE TABLE owners (
            owner INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE
        ) STRICT;
CREATE TABLE journal (
            sequence INTEGER PRIMARY KEY,
            id TEXT NOT NULL,
            version INTEGER NOT NULL,
            number INTEGER NOT NULL,
            owner INTEGER NOT NULL REFERENCES owners,
            operation TEXT NOT NULL,
            recorded_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            reason TEXT,
            content TEXT,
            body TEXT,
            checksum BLOB NOT NULL
        ) STRICT;
CREATE UNIQUE INDEX journal_id ON journal (id, version);
CREATE INDEX journal_owner ON journal (owner);
CREATE TABLE heads (
            owner INTEGER NOT NULL,
            number INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            state TEXT NOT NULL,
            type TEXT NOT NULL,
            importance REAL NOT NULL,
            created_at INTEGER NOT NULL,
            occurred_at INTEGER NOT NULL,
            expires_at INTEGER,
            author TEXT,
            source_type TEXT,
            has_pointer INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (owner, number)
        ) STRICT, WITHOUT ROWID;
CREATE TABLE tags (
            owner INTEGER NOT NULL,
            tag TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (owner, tag, number)
        ) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
            owner INTEGER NOT NULL,
            key TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (owner, key)
        ) STRICT, WITHOUT ROWID;
CREATE TABLE accesses (
            number INTEGER PRIMARY KEY,
            count INTEGER NOT NULL,
            last_at INTEGER NOT NULL
        ) STRICT;
CREATE TABLE damaged (
            sequence INTEGER PRIMARY KEY,
            id ANY, version ANY, number ANY, owner ANY, operation ANY, recorded_at ANY,
            created_at ANY, reason ANY, content ANY, body ANY, checksum ANY
        ) STRICT;
CREATE TABLE vectors (
            number INTEGER PRIMARY KEY,
            embedder TEXT NOT NULL,
            data BLOB NOT NULL
        , spans BLOB, pieces BLOB, digest BLOB) STRICT;
CREATE INDEX vectors_digest ON vectors (digest) WHERE digest IS NOT NULL;
CREATE TABLE renewed (
            number INTEGER PRIMARY KEY,
            embedder TEXT NOT NULL,
            data BLOB NOT NULL,
            spans BLOB,
            pieces BLOB,
            digest BLOB
        ) STRICT;
CREATE TABLE images (
            image INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            part TEXT NOT NULL,
            data BLOB NOT NULL,
            UNIQUE (owner, part)
        ) STRICT;
CREATE TABLE records (
            owner INTEGER NOT NULL REFERENCES owners,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            version INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            body TEXT NOT NULL,
            checksum BLOB NOT NULL,
            PRIMARY KEY (owner, kind, name)
        ) STRICT, WITHOUT ROWID;
CREATE TABLE damaged_records (
            owner ANY, kind ANY, name ANY, version ANY, updated_at ANY, body ANY, checksum ANY
        ) STRICT;
INSERT INTO settings VALUES ('dimension', '16');
INSERT INTO settings VALUES ('durability', 'full');
INSERT INTO settings VALUES ('embedder', 'hashing-16');
INSERT INTO owners VALUES (1, '["user","ada"]');
INSERT INTO owners VALUES (2, '["project","api"]');
INSERT INTO owners VALUES (3, '["user","bob"]');
INSERT INTO owners VALUES (4, '["session","ada","monday"]');
INSERT INTO journal VALUES (1, '01a1e681-7c54-74b4-85f4-c6b673039418', 1, 1, 1, 'added', 1794868608084072, 1794868608084072, NULL, 'Ada likes tea', '{"tags":["likes.tea"],"metadata":{"topic":"tea"},"key":"tea"}', X'30d809f6a0f73c69d09ba0e18ec3fccc');
INSERT INTO journal VALUES (2, '01a1e681-7c64-7feb-a0d6-92d7a632248a', 1, 2, 1, 'added', 1794868608100947, 1794868608100947, NULL, 'Ada likes cake', '{"tags":["likes.cake"],"metadata":{"topic":"cake"},"key":"cake"}', X'0edf5851c776db5118e71007e5b55751');
INSERT INTO journal VALUES (3, '01a1e681-7c66-724f-ab03-f366d27c19d4', 1, 3, 1, 'added', 1794868608102624, 1794868608102624, NULL, 'Ada likes rain', '{"tags":["likes.rain"],"metadata":{"topic":"rain"},"key":"rain"}', X'f31cb3fd75e17c2bda228e12d4ff55fa');
INSERT INTO journal VALUES (4, '01a1e681-7c67-7e72-8929-15ab126c4138', 1, 4, 1, 'added', 1794868608103712, 1794868608103712, NULL, 'Ada likes music', '{"tags":["likes.music"],"metadata":{"topic":"music"},"key":"music"}', X'40ee816d9d15b33d0c09e093e4c26db2');
INSERT INTO journal VALUES (5, '01a1e681-7c71-769d-88c9-2c05db3e8fe5', 1, 5, 1, 'added', 1794868608113778, 1794868608113778, NULL, 'Ada likes chess', '{"tags":["likes.chess"],"metadata":{"topic":"chess"},"key":"chess"}', X'5b2b8e5a73da84250ff155a45d19fcbb');
INSERT INTO journal VALUES (6, '01a1e681-7c77-7962-85e7-e38d70f1622a', 1, 6, 2, 'added', 1794868608119914, 1794868608119914, NULL, 'Porridge with honey', '{"type":"preference","importance":0.9,"title":"Breakfast habits","description":"about food","language":"en","confidence":0.5,"relevance":0.25,"source":{"type":"conversation","reference":"call 7"}}', X'5f5543d589b514d18490d038d6c148cf');
INSERT INTO journal VALUES (7, '01a1e681-7c78-7465-98cd-434c80cc7f51', 1, 7, 1, 'added', 1794868608120932, 1794868608120932, NULL, 'Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.Paragraph 0 of a long letter about the garden.
Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.Paragraph 1 of a long letter about the garden.
Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.Paragraph 2 of a long letter about the garden.
Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.Paragraph 3 of a long letter about the garden.
Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.Paragraph 4 of a long letter about the garden.
Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.Paragraph 5 of a long letter about the garden.', '{"author":"Ada","role":"user","session":"monday"}', X'ee77261c72138687ad6bcb39988894ea');
INSERT INTO journal VALUES (8, '01a1e681-7c7c-7f16-99cc-390c0ea14671', 1, 8, 1, 'added', 1794868608124396, 1794868608124396, NULL, 'Lives in Paris', '{"occurred_at":"2020-01-02T00:00:00Z","expires_at":"2050-01-02T00:00:00Z"}', X'2a0a4fd543a7358050f9a325ef0cff92');
INSERT INTO journal VALUES (9, '01a1e681-7c7c-7f16-99cc-390c0ea14671', 2, 8, 1, 'updated', 1794868608157085, 1794868608124396, NULL, 'Lives in Rome', '{"occurred_at":"2020-01-02T00:00:00Z","expires_at":"2050-01-02T00:00:00Z"}', X'ee8fb0832a1ac5c4dbe33fa718b23d36');
INSERT INTO journal VALUES (10, '01a1e681-7ca0-7b7e-920b-c234c62d9a1c', 1, 10, 1, 'added', 1794868608160659, 1794868608160659, NULL, 'A secret wish', '{}', X'9348da6ff137d9bbdc145f1612a8b4e2');
INSERT INTO journal VALUES (11, '01a1e681-7ca0-7b7e-920b-c234c62d9a1c', 2, 10, 1, 'forgotten', 1794868608168469, 1794868608160659, 'asked to', 'A secret wish', '{"state":"forgotten"}', X'3371788eec8d629c69df20e8a401e85e');
INSERT INTO journal VALUES (13, '01a1e681-7ca9-7264-b54c-73cb391c9484', 2, 12, 1, 'erased', 1794868608173606, 1794868608173606, NULL, NULL, NULL, X'f251d573b69f83fdcd5f02e16de669e2');
INSERT INTO journal VALUES (14, '01a1e681-7cb8-78e2-9c8b-e45dfb28769a', 1, 14, 1, 'added', 1794868608184431, 1794868608184431, NULL, 'See the manual', '{"pointer":{"source_type":"spec","source_id":"manual","content_hash":"abc","synced_at":"2026-01-01T00:00:00Z"},"references":["01a1e681-7c7c-7f16-99cc-390c0ea14671"]}', X'a45224738dca422b8e64d3b09819baa4');
INSERT INTO journal VALUES (15, '01a1e681-7cc0-70cb-a3c5-3b42e637e7d8', 1, 15, 3, 'added', 1794868608192536, 1794868608192536, NULL, 'Bob likes tea ☕', '{}', X'8f1a43898319699bd550244856ce4d5c');
INSERT INTO journal VALUES (16, '01a1e681-7cf8-72ca-9bd1-cb79f1143565', 1, 16, 4, 'added', 1794868608248441, 1794868608248441, NULL, 'Talked about OAuth', '{}', X'fbe1662ce6b5d2cc36edf53f8e25ea2d');
INSERT INTO heads VALUES (1, 1, 1, 'active', 'fact', 0.5, 1794868608084072, 1794868608084072, NULL, NULL, NULL, 0, 138);
INSERT INTO heads VALUES (1, 2, 2, 'active', 'fact', 0.5, 1794868608100947, 1794868608100947, NULL, NULL, NULL, 0, 142);
INSERT INTO heads VALUES (1, 3, 3, 'active', 'fact', 0.5, 1794868608102624, 1794868608102624, NULL, NULL, NULL, 0, 142);
INSERT INTO heads VALUES (1, 4, 4, 'active', 'fact', 0.5, 1794868608103712, 1794868608103712, NULL, NULL, NULL, 0, 146);
INSERT INTO heads VALUES (1, 5, 5, 'active', 'fact', 0.5, 1794868608113778, 1794868608113778, NULL, NULL, NULL, 0, 146);
INSERT INTO heads VALUES (1, 7, 7, 'active', 'fact', 0.5, 1794868608120932, 1794868608120932, NULL, 'Ada', NULL, 0, 2922);
INSERT INTO heads VALUES (1, 8, 9, 'active', 'fact', 0.5, 1794868608124396, 1577923200000000, 2524694400000000, NULL, NULL, 0, 151);
INSERT INTO heads VALUES (1, 10, 11, 'forgotten', 'fact', 0.5, 1794868608160659, 1794868608160659, NULL, NULL, NULL, 0, 98);
INSERT INTO heads VALUES (1, 14, 14, 'active', 'fact', 0.5, 1794868608184431, 1794868608184431, NULL, NULL, NULL, 1, 243);
INSERT INTO heads VALUES (2, 6, 6, 'active', 'preference', 0.9, 1794868608119914, 1794868608119914, NULL, NULL, 'conversation', 0, 279);
INSERT INTO heads VALUES (3, 15, 15, 'active', 'fact', 0.5, 1794868608192536, 1794868608192536, NULL, NULL, NULL, 0, 83);
INSERT INTO heads VALUES (4, 16, 16, 'active', 'fact', 0.5, 1794868608248441, 1794868608248441, NULL, NULL, NULL, 0, 84);
INSERT INTO tags VALUES (1, 'likes.cake', 2);
INSERT INTO tags VALUES (1, 'likes.chess', 5);
INSERT INTO tags VALUES (1, 'likes.music', 4);
INSERT INTO tags VALUES (1, 'likes.rain', 3);
INSERT INTO tags VALUES (1, 'likes.tea', 1);
INSERT INTO keys VALUES (1, 'cake', 2);
INSERT INTO keys VALUES (1, 'chess', 5);
INSERT INTO keys VALUES (1, 'music', 4);
INSERT INTO keys VALUES (1, 'rain', 3);
INSERT INTO keys VALUES (1, 'tea', 1);
INSERT INTO accesses VALUES (1, 1, 1794868608100512);
INSERT INTO accesses VALUES (2, 1, 1794868608102471);
INSERT INTO accesses VALUES (3, 1, 1794868608103600);
INSERT INTO accesses VALUES (4, 1, 1794868608113551);
INSERT INTO accesses VALUES (5, 1, 1794868608119723);
INSERT INTO vectors VALUES (1, 'hashing-16', X'3acd133f0000000000000000000000000000000000000000000000003acd13bf0000000000000000000000000000000000000000000000003acd13bf00000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (2, 'hashing-16', X'000000000000000000000000000000000000000000000000000000003acd13bf000000000000000000000000000000003acd13bf000000003acd13bf00000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (3, 'hashing-16', X'000000000000000000000000000000000000000000000000000000003acd13bf0000000000000000000000000000000000000000000000003acd13bf3acd13bf', NULL, NULL, NULL);
INSERT INTO vectors VALUES (4, 'hashing-16', X'00000000000000000000000000000000000000000000000000000000000080bf0000000000000000000000000000000000000000000000000000000000000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (5, 'hashing-16', X'0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000080bf00000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (6, 'hashing-16', X'000000002ef9e43e000000000000000000000000000000002ef9e43e000000000000000000000000000000002ef9e4be2ef9e43e00000000000000002ef9e4be', NULL, NULL, NULL);
INSERT INTO vectors VALUES (7, 'hashing-16', X'cf5abebe0000000000000000cf5abe3e00000000cf5abe3e000000005881d3be00000000cf5abebe00000000000000000000000000000000cf5abebecf5abebecf5abebe0000000000000000cf5abe3e0000000000000000cf5abe3e5881d3be00000000cf5abebe00000000000000000000000000000000cf5abebecf5abebecf5abebe0000000000000000cf5abe3e0000000000000000000000005881d3be00000000cf5abebe0000000000000000cf5abebe00000000cf5abebecf5abebecf5abebecf5abe3e00000000cf5abe3e0000000000000000000000005881d3be00000000cf5abebe00000000000000000000000000000000cf5abebecf5abebecf5abebe0000000000000000cf5abe3e0000000000000000cf5abebe5881d3be00000000cf5abebe00000000000000000000000000000000cf5abebecf5abebe000000000000000000000000c5c8df3e00000000000000000000000031a6f8be00000000c5c8dfbe00000000000000000000000000000000c5c8dfbec5c8dfbe', X'000000009e0100009f0100003d0300003e030000dc040000dd0400007b0600007c0600001a0800001b080000b9090000', NULL, NULL);
INSERT INTO vectors VALUES (8, 'hashing-16', X'000000000000000000000000000000000000000000000000000000003acd133f000000003acd13bf3acd13bf0000000000000000000000000000000000000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (10, 'hashing-16', X'00000000000000000000000000000000000000003acd133f3acd13bf00000000000000000000000000000000000000000000000000000000000000003acd13bf', NULL, NULL, NULL);
INSERT INTO vectors VALUES (14, 'hashing-16', X'0000000000000000000000000000000000000000000000003acd13bf000000003acd133f00000000000000000000000000000000000000003acd13bf00000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (15, 'hashing-16', X'3acd133f000000003acd13bf00000000000000000000000000000000000000000000000000000000000000000000000000000000000000003acd13bf00000000', NULL, NULL, NULL);
INSERT INTO vectors VALUES (16, 'hashing-16', X'3acd13bf0000000000000000000000000000000000000000000000003acd13bf0000000000000000000000003acd133f00000000000000000000000000000000', NULL, NULL, NULL);
INSERT INTO records VALUES (1, 'session', 'monday', 1, 1794868608246376, '{"session_id":"monday","user_id":"ada","created_at":"2026-11-16T22:36:48.246376Z","last_accessed":"2026-11-16T22:36:48.246376Z","decay_config":null,"compaction_config":null,"config":null,"preferences":{"language":"de","verbosity":null,"custom":{}},"metadata":{},"closed_at":null,"deleted_at":null,"deleted_reason":null}', X'215ede7e3010d50b61b380599d29c69e');
PRAGMA application_id = 1464617808;
PRAGMA user_version = 5;
COMMIT;
