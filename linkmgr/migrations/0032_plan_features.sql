-- After a downgrade, single targets and parameters can be removed. Messages say "custom aliases", as the console does.
CREATE OR REPLACE TRIGGER custom_alias_on_insert AFTER INSERT ON links FOR EACH ROW
    WHEN (NEW.custom) EXECUTE FUNCTION require_feature('alias', 'custom aliases');
CREATE OR REPLACE TRIGGER custom_alias_on_update AFTER UPDATE OF alias ON links FOR EACH ROW
    WHEN (NEW.alias <> OLD.alias) EXECUTE FUNCTION require_feature('alias', 'custom aliases');
CREATE OR REPLACE TRIGGER geo_on_update AFTER UPDATE OF locations ON links FOR EACH ROW
    WHEN (NOT NEW.locations <@ OLD.locations)
    EXECUTE FUNCTION require_feature('geo', 'targets by country');
CREATE OR REPLACE TRIGGER device_on_update AFTER UPDATE OF devices ON links FOR EACH ROW
    WHEN (NOT NEW.devices <@ OLD.devices)
    EXECUTE FUNCTION require_feature('device', 'targets by device');
CREATE OR REPLACE TRIGGER parameters_on_update AFTER UPDATE OF parameters ON links FOR EACH ROW
    WHEN (NOT NEW.parameters <@ OLD.parameters)
    EXECUTE FUNCTION require_feature('parameters', 'link parameters');
CREATE OR REPLACE TRIGGER custom_alias_on_insert AFTER INSERT ON bios FOR EACH ROW
    WHEN (NEW.custom) EXECUTE FUNCTION require_feature('alias', 'custom aliases');
CREATE OR REPLACE TRIGGER custom_alias_on_update AFTER UPDATE OF alias ON bios FOR EACH ROW
    WHEN (NEW.alias <> OLD.alias) EXECUTE FUNCTION require_feature('alias', 'custom aliases');
