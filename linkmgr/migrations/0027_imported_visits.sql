-- Imported visits may be older than their user. Their days remain in `account_days`.
CREATE OR REPLACE FUNCTION keep_detailed_since() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    plan plans;
BEGIN
    IF TG_TABLE_NAME = 'plans' THEN
        plan := OLD;
    ELSE
        SELECT * INTO plan FROM plans
         WHERE id = CASE WHEN OLD.plan_id IS NOT NULL AND (OLD.expires IS NULL OR OLD.expires > now()) THEN OLD.plan_id
                         ELSE (SELECT min(id) FROM plans WHERE free) END;
    END IF;
    INSERT INTO detailed_since AS d (user_id, since)
    SELECT id, since
      FROM (SELECT now() - make_interval(days => nullif((plan.limits ->> 'retention')::int, 0)) AS since) start,
           accounts
     WHERE (TG_TABLE_NAME = 'plans' AND planid = OLD.id OR TG_TABLE_NAME = 'users' AND id = OLD.id)
       AND (registered < since
            OR (SELECT min(day) FROM account_days WHERE user_id = accounts.id AND dimension = '')
               <= (since AT TIME ZONE 'UTC')::date)
    ON CONFLICT (user_id) DO UPDATE SET since = greatest(d.since, excluded.since);
    RETURN NULL;
END $$;

-- The visits of an import that are beyond the clicks of the plan.
ALTER TABLE imports ADD COLUMN IF NOT EXISTS visits_refused bigint NOT NULL DEFAULT 0;
