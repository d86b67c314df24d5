-- A step of its own: it waits for readers of links, and its repetition does not build an index again.
DROP INDEX links_user_id_expires_idx;
