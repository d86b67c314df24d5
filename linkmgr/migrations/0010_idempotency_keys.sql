-- Answers to requests with the header Idempotency-Key, kept for 24 hours. `answer` is encrypted: a hash of the request,
-- and the status, content type and body of the answer. Rows of a deleted user are deleted in batches.
CREATE TABLE idempotency_keys (
    user_id bigint      NOT NULL,
    key     text        NOT NULL,
    answer  text        NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);
CREATE INDEX ON idempotency_keys (created);
