-- Store the browser and the operating system of each session, for the list on the account page.

ALTER TABLE sessions
    ADD COLUMN browser text NOT NULL DEFAULT '',
    ADD COLUMN system  text NOT NULL DEFAULT '';
