-- The primary key of `aliases` now keeps aliases unique. The previous version still finds links and bio pages by their
-- columns, but without an index: reload the service soon after the upgrade.

LOCK TABLE links, bios IN ACCESS EXCLUSIVE MODE;

DROP TRIGGER alias_of_bio ON links;
DROP TRIGGER new_alias ON bios;
DROP TRIGGER other_alias ON bios;
DROP FUNCTION refuse_alias_of_link, refuse_alias_of_bio;

ALTER TABLE links DROP CONSTRAINT alias_taken;
ALTER TABLE bios DROP CONSTRAINT bio_alias_taken;
ALTER TABLE aliases RENAME CONSTRAINT alias_unique TO alias_taken;
