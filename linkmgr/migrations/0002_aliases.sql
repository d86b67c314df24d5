-- Move the aliases of links and bio pages to one table. This step creates the table and the triggers that fill it. The
-- next step adds the existing rows in a separate transaction, because CREATE TRIGGER blocks writes until its
-- transaction ends. Until the last step, the old constraints keep aliases unique.

CREATE TABLE aliases (
    alias     text   NOT NULL,
    domain_id bigint NOT NULL,
    link_id   bigint,
    bio_id    bigint,
    CONSTRAINT alias_unique PRIMARY KEY (alias, domain_id),
    CHECK (num_nonnulls(link_id, bio_id) = 1)
);

CREATE FUNCTION keep_link_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO aliases (alias, domain_id, link_id) SELECT alias, coalesce(domain_id, 0), id FROM added;
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE aliases SET alias = NEW.alias, domain_id = coalesce(NEW.domain_id, 0)
         WHERE alias = OLD.alias AND domain_id = coalesce(OLD.domain_id, 0);
    ELSE
        DELETE FROM aliases WHERE alias = OLD.alias AND domain_id = coalesce(OLD.domain_id, 0);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION keep_bio_alias() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO aliases (alias, domain_id, bio_id) VALUES (NEW.alias, 0, NEW.id);
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE aliases SET alias = NEW.alias WHERE alias = OLD.alias AND domain_id = 0;
    ELSE
        DELETE FROM aliases WHERE alias = OLD.alias AND domain_id = 0;
    END IF;
    RETURN NULL;
END $$;

-- Bio pages first: their old trigger locks bios before links.
CREATE TRIGGER alias_insert AFTER INSERT ON bios FOR EACH ROW EXECUTE FUNCTION keep_bio_alias();
CREATE TRIGGER alias_update AFTER UPDATE OF alias ON bios FOR EACH ROW
    WHEN (NEW.alias <> OLD.alias) EXECUTE FUNCTION keep_bio_alias();
CREATE TRIGGER alias_delete AFTER DELETE ON bios FOR EACH ROW EXECUTE FUNCTION keep_bio_alias();

CREATE TRIGGER alias_insert AFTER INSERT ON links REFERENCING NEW TABLE AS added EXECUTE FUNCTION keep_link_alias();
CREATE TRIGGER alias_update AFTER UPDATE OF alias, domain_id ON links FOR EACH ROW
    WHEN ((NEW.alias, NEW.domain_id) IS DISTINCT FROM (OLD.alias, OLD.domain_id)) EXECUTE FUNCTION keep_link_alias();
CREATE TRIGGER alias_delete AFTER DELETE ON links FOR EACH ROW EXECUTE FUNCTION keep_link_alias();
