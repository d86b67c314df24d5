"""The definitions of all objects in a database, read from PostgreSQL's catalogs."""

_NAMESPACE = "'public'::regnamespace"
_DEFINITIONS = f"""
    SELECT 'relation' AS kind, relname::text AS name,
           concat_ws(' ', relkind, relpersistence, reloptions::text, pg_get_partkeydef(oid)) AS definition
      FROM pg_class WHERE relnamespace = {_NAMESPACE}
     UNION ALL
    SELECT 'column', relname || '.' || attname,
           concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
                     pg_get_expr(adbin, adrelid))
      FROM pg_attribute
      JOIN pg_class ON pg_class.oid = attrelid
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE relnamespace = {_NAMESPACE} AND relkind IN ('r', 'p', 'v') AND attnum > 0 AND NOT attisdropped
     UNION ALL
    SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
      FROM pg_constraint WHERE connamespace = {_NAMESPACE}
     UNION ALL
    SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
     UNION ALL
    SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)
      FROM pg_trigger WHERE NOT tgisinternal
     UNION ALL
    SELECT 'function', oid::regprocedure::text, CASE WHEN prokind <> 'a' THEN pg_get_functiondef(oid) END
      FROM pg_proc WHERE pronamespace = {_NAMESPACE}
     UNION ALL
    SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
     UNION ALL
    SELECT 'version', '', version::text FROM service
"""

DEFINITIONS = f"SELECT kind, name, definition FROM ({_DEFINITIONS}) all_definitions ORDER BY kind, name, definition"
