-- How often in a row a process took the job and did not put it back, so that an import that ends each process can be
-- ended itself. A change of `jobs` by the previous version keeps the number.
ALTER TABLE jobs ADD COLUMN lost integer NOT NULL DEFAULT 0;

-- Tells the links that an import has made from those that existed before.
ALTER TABLE imports ADD COLUMN first_id bigint NOT NULL DEFAULT nextval('target_ids');
