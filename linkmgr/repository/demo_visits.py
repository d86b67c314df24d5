"""Three months of believable visits for the demonstration data, the same at each installation."""

from linkmgr.db.statements import UNSYNCED, database, run

_PRELUDE = f"{UNSYNCED}SET LOCAL statement_timeout = 0; "


def add(user_id: int) -> None:
    """Add visits to all links and QR codes of the user. They are pending until they are in the rollups.

    QR codes of Wi-Fi networks get none, because phones connect without this service.

    `choices` are labels with weights. A visit takes the label at a position that is a hash of its day and number. An
    agent is a browser, a system and a device.
    """
    run("SELECT create_partition(now() - make_interval(days => 30 * n)) FROM generate_series(0, 3) n")
    database().execute(
        """
        WITH weights (kind, label, weight) AS (
            VALUES ('country', 'Germany', 30), ('country', 'United States', 22), ('country', 'France', 11),
                   ('country', 'Austria', 9), ('country', 'United Kingdom', 8), ('country', 'Switzerland', 6),
                   ('country', 'Japan', 5), ('country', 'Brazil', 4), ('country', 'India', 3), ('country', 'Poland', 1),
                   ('country', 'Unknown', 1),
                   ('referrer', 'Direct, email and other', 42), ('referrer', 'google.com', 20), ('referrer', 't.co', 9),
                   ('referrer', 'l.instagram.com', 9), ('referrer', 'm.facebook.com', 8),
                   ('referrer', 'news.ycombinator.com', 6), ('referrer', 'duckduckgo.com', 4),
                   ('referrer', 'bakers.example.org', 2),
                   ('agent', 'Mobile Safari|iOS|phone', 27), ('agent', 'Chrome Mobile|Android|phone', 25),
                   ('agent', 'Chrome|Windows|desktop', 18), ('agent', 'Firefox|Windows|desktop', 8),
                   ('agent', 'Safari|Mac OS X|desktop', 7), ('agent', 'Firefox|Linux|desktop', 5),
                   ('agent', 'Edge|Windows|desktop', 5), ('agent', 'Mobile Safari|iOS|tablet', 5),
                   ('bot', '', 94), ('bot', 'Googlebot', 3), ('bot', 'bingbot', 2), ('bot', 'GPTBot', 1),
                   ('language', 'German', 42), ('language', 'English', 34), ('language', 'French', 12),
                   ('language', 'Japanese', 5), ('language', 'Portuguese', 4), ('language', 'Polish', 2),
                   ('language', 'Unknown', 1)
             UNION ALL
            SELECT 'hour', hour::text, (ARRAY[2,1,1,1,1,2,5,9,12,13,13,14,16,14,12,11,11,12,13,15,16,13,8,4])[hour + 1]
              FROM generate_series(0, 23) hour
             UNION ALL
            SELECT 'target', id::text, 1000 / row_number() OVER (ORDER BY id)
              FROM (SELECT id FROM links WHERE user_id = %(user_id)s
                     UNION ALL
                    SELECT id FROM qrs WHERE user_id = %(user_id)s AND type <> 'wifi') targets),
        choices AS MATERIALIZED (
            SELECT kind, label, weight, sum(weight) OVER (PARTITION BY kind ORDER BY label) AS upto,
                   sum(weight) OVER (PARTITION BY kind) AS whole
              FROM weights),
        drawn AS MATERIALIZED (
            SELECT day, number,
                   (SELECT jsonb_object_agg(kind, label)
                      FROM choices
                     WHERE (hashtextextended(kind || day || '/' || number, 7) & 1048575) * whole / 1048576.0
                           BETWEEN upto - weight AND upto - 0.000001) AS labels
              FROM generate_series(0, 90) AS day,
                   LATERAL generate_series(1, (ARRAY[30, 62, 60, 58, 61, 55, 38])[
                       extract(dow FROM now() - make_interval(days => day))::int + 1] - day / 4) AS number),
        generated AS MATERIALIZED (
            SELECT (labels ->> 'target')::bigint AS tracked_id,
                   date_trunc('day', now(), 'UTC') - make_interval(days => day)
                   + make_interval(hours => (labels ->> 'hour')::int, secs => number * 977 %% 3600) AS at,
                   decode(md5(labels::text), 'hex') AS visitor, labels ->> 'country' AS country,
                   CASE WHEN labels ->> 'bot' = '' THEN labels ->> 'referrer' ELSE 'Direct, email and other' END
                       AS referrer,
                   CASE WHEN labels ->> 'bot' = '' THEN split_part(labels ->> 'agent', '|', 1)
                        ELSE labels ->> 'bot' END AS browser,
                   CASE WHEN labels ->> 'bot' = '' THEN split_part(labels ->> 'agent', '|', 2) ELSE 'Unknown' END AS os,
                   CASE WHEN labels ->> 'bot' = '' THEN split_part(labels ->> 'agent', '|', 3) ELSE 'Unknown' END
                       AS device,
                   labels ->> 'language' AS language, labels ->> 'bot' <> '' AS bot
              FROM drawn),
        past AS MATERIALIZED (
            SELECT * FROM generated WHERE at < now()),
        people AS (
            SELECT * FROM past WHERE NOT bot),
        visits_added AS (
            INSERT INTO visits (tracked_id, at, visitor, country, referrer, browser, os, device, language, bot)
            SELECT tracked_id, at, visitor, country, referrer, browser, os, device, language, bot FROM past),
        visitors_added AS (
            INSERT INTO visitors (tracked_id, visitor) SELECT DISTINCT tracked_id, visitor FROM people
            RETURNING tracked_id),
        totals_added AS (
            INSERT INTO totals (tracked_id, clicks, visitors)
            SELECT tracked_id, count(*), count(DISTINCT visitor) FROM people GROUP BY tracked_id),
        usage_added AS (
            INSERT INTO usage_parts (user_id, kind, total)
            SELECT %(user_id)s, CASE WHEN bot THEN 'bots ' ELSE 'visits ' END || to_char(now(), 'YYYY-MM'), count(*)
              FROM past
             WHERE at >= date_trunc('month', now(), 'UTC')
             GROUP BY bot
            ON CONFLICT DO NOTHING)
        INSERT INTO pending_visits (user_id, tracked_id, at, bot, country, city, referrer, browser, os, device,
                                    language, social)
        SELECT %(user_id)s, tracked_id, at, bot, country, 'Unknown', referrer, browser, os, device, language,
               CASE WHEN bot THEN NULL WHEN referrer = 't.co' THEN 'twitter' WHEN referrer = 'm.facebook.com'
                    THEN 'facebook' WHEN referrer = 'l.instagram.com' THEN 'instagram' END
          FROM past
        """,
        {"user_id": user_id},
        idempotent=False,
        prelude=_PRELUDE,
    )
