CREATE FUNCTION replace_link_pixels(owner bigint, link bigint, pixels bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM link_pixels WHERE link_id = link AND pixel_id <> ALL (pixels);
    INSERT INTO link_pixels (user_id, link_id, pixel_id) SELECT owner, link, unnest(pixels) ON CONFLICT DO NOTHING;
END $$;
