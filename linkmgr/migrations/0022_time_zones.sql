-- The time zone in which the console shows times to a user.

ALTER TABLE users ADD COLUMN timezone text NOT NULL DEFAULT 'UTC';

DROP VIEW accounts;
CREATE VIEW accounts AS
SELECT u.*,
       CASE WHEN u.admin THEN 'admin' WHEN p.free THEN 'free' ELSE 'pro' END AS status,
       p.id AS planid, p.name AS plan, p.rate, p.api, p.limits, u.xmin::text AS version
  FROM users u,
       LATERAL (SELECT *
                  FROM plans
                 WHERE id = CASE WHEN u.plan_id IS NOT NULL AND (u.expires IS NULL OR u.expires > now()) THEN u.plan_id
                                 ELSE (SELECT min(id) FROM plans WHERE free) END
                 LIMIT 1) p;
