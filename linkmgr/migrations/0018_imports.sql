-- Imports of links, and clicks that another service counted.

ALTER TABLE links ADD COLUMN imported_clicks bigint;

CREATE TABLE imports (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id     bigint      NOT NULL,
    state       text        NOT NULL CHECK (state IN ('draft', 'queued', 'running', 'done', 'failed', 'cancelled')),
    source      text        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    on_conflict text        NOT NULL CHECK (on_conflict IN ('skip', 'rename', 'update')),
    mapping     jsonb       NOT NULL DEFAULT '{}',
    address     text        NOT NULL DEFAULT '',
    token       text,
    size        bigint,
    bytes_read  bigint      NOT NULL DEFAULT 0,
    position    jsonb,
    batch       integer     NOT NULL DEFAULT 0,
    pending     jsonb,
    rows_read   bigint      NOT NULL DEFAULT 0,
    made        bigint      NOT NULL DEFAULT 0,
    updated     bigint      NOT NULL DEFAULT 0,
    skipped     bigint      NOT NULL DEFAULT 0,
    failed      bigint      NOT NULL DEFAULT 0,
    visits      bigint      NOT NULL DEFAULT 0,
    message     text        NOT NULL DEFAULT '',
    created     timestamptz NOT NULL DEFAULT now(),
    started     timestamptz,
    finished    timestamptz,
    UNIQUE (user_id, id)
);
CREATE TRIGGER add_usage AFTER INSERT ON imports REFERENCING NEW TABLE AS inserted
    EXECUTE FUNCTION update_usage();
CREATE TRIGGER subtract_usage AFTER DELETE ON imports REFERENCING OLD TABLE AS deleted
    EXECUTE FUNCTION update_usage();

CREATE TABLE import_chunks (
    user_id   bigint  NOT NULL,
    import_id bigint  NOT NULL,
    number    integer NOT NULL,
    data      bytea   NOT NULL,
    PRIMARY KEY (import_id, number),
    FOREIGN KEY (user_id, import_id) REFERENCES imports (user_id, id) ON DELETE CASCADE
);

CREATE TABLE import_errors (
    user_id   bigint NOT NULL,
    import_id bigint NOT NULL,
    number    bigint NOT NULL,
    raw       json   NOT NULL,
    code      text   NOT NULL,
    message   text   NOT NULL,
    PRIMARY KEY (import_id, number),
    FOREIGN KEY (user_id, import_id) REFERENCES imports (user_id, id) ON DELETE CASCADE
);

CREATE TABLE import_references (
    user_id   bigint NOT NULL,
    import_id bigint NOT NULL,
    kind      text   NOT NULL,
    name      text   NOT NULL,
    row_id    bigint NOT NULL,
    PRIMARY KEY (import_id, kind, name),
    FOREIGN KEY (user_id, import_id) REFERENCES imports (user_id, id) ON DELETE CASCADE
);
