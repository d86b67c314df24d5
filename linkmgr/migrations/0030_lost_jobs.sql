-- How often in a row a process took the job and did not put it back, so that an import that ends each process can be
-- ended itself. A change of `jobs` by the previous version keeps the number.
ALTER TABLE jobs ADD COLUMN lost integer NOT NULL DEFAULT 0;
