-- QR codes can have the short URL of a link on a branded domain. New colors of overlays need the contrast that QR codes
-- need; existing ones stay until they are changed. Triggers replace the constraint of QR codes, because they report the
-- colors. Nothing here reads or changes rows.

CREATE OR REPLACE FUNCTION refuse_branded_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    url text := NEW.data #>> '{}';
BEGIN
    IF (NEW.data::text = OLD.data::text) IS NOT TRUE AND EXISTS (
        SELECT FROM live_domains d
         WHERE host = host_of(url)
           AND NOT EXISTS (SELECT FROM aliases a
                            WHERE a.domain_id = d.id
                              AND a.alias = substring(url FROM '^' || d.scheme || '://[^/:?#]+/([A-Za-z0-9_-]+)/?$')))
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'link_branded', MESSAGE = 'branded';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION color_parts(color text) RETURNS double precision[] LANGUAGE sql IMMUTABLE
RETURN CASE WHEN color LIKE '#%'
            THEN (SELECT ARRAY[get_byte(bytes, 0), get_byte(bytes, 1), get_byte(bytes, 2)]::double precision[]
                    FROM decode(regexp_replace(substr(color, 2), '^(.)(.)(.)$', '\1\1\2\2\3\3'), 'hex') AS bytes)
            ELSE string_to_array(btrim(color, 'rgb()'), ',')::double precision[] END;

CREATE OR REPLACE FUNCTION luminance(colour text) RETURNS double precision LANGUAGE sql IMMUTABLE
RETURN (SELECT sum(weight * CASE WHEN part <= 10 THEN part / 255 / 12.92 ELSE ((part / 255 + 0.055) / 1.055) ^ 2.4 END)
          FROM unnest(color_parts(colour), ARRAY[0.2126, 0.7152, 0.0722]) AS parts (part, weight));

CREATE FUNCTION refuse_close_colors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_ARGV[0], MESSAGE = 'contrast',
        DETAIL = (to_jsonb(NEW) ->> TG_ARGV[1]) || ' ' || (to_jsonb(NEW) ->> TG_ARGV[2]);
END $$;

CREATE TRIGGER colors_on_insert BEFORE INSERT ON overlays FOR EACH ROW
    WHEN (contrast(NEW.color, NEW.background) < 3)
    EXECUTE FUNCTION refuse_close_colors('overlay_colours_too_close', 'color', 'background');
CREATE TRIGGER colors_on_update BEFORE UPDATE ON overlays FOR EACH ROW
    WHEN ((NEW.color, NEW.background) IS DISTINCT FROM (OLD.color, OLD.background)
          AND contrast(NEW.color, NEW.background) < 3)
    EXECUTE FUNCTION refuse_close_colors('overlay_colours_too_close', 'color', 'background');

ALTER TABLE qrs DROP CONSTRAINT colours_too_close;
CREATE TRIGGER colors_on_insert_or_update BEFORE INSERT OR UPDATE ON qrs FOR EACH ROW
    WHEN (contrast(NEW.foreground, NEW.background) < 3)
    EXECUTE FUNCTION refuse_close_colors('colours_too_close', 'foreground', 'background');
