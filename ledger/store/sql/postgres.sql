-- The shared store: records and seals, as in schema.sql. Guard rails only; the verifier trusts none of it.
CREATE SCHEMA {schema};

CREATE TABLE {schema}.about (
    application text NOT NULL,
    format      integer NOT NULL
);
INSERT INTO {schema}.about VALUES ('evidence-ledger', 1);

CREATE TABLE {schema}.records (
    seq       bigint PRIMARY KEY,
    id        bytea NOT NULL CHECK (octet_length(id) = 32),
    prev      bytea CHECK (octet_length(prev) = 32),
    signature bytea NOT NULL CHECK (octet_length(signature) = 64),
    entry     bytea NOT NULL CHECK (octet_length(entry) <= 65471)
);

CREATE TABLE {schema}.seals (
    size bigint PRIMARY KEY,
    note bytea NOT NULL
);

-- Only the next seq on the last id is let in.
CREATE FUNCTION {schema}.append_only() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $append$
DECLARE
    newest bigint;
    newest_id bytea;
BEGIN
    SELECT seq, id INTO newest, newest_id FROM ONLY {schema}.records ORDER BY seq DESC LIMIT 1;
    IF NEW.seq IS DISTINCT FROM coalesce(newest + 1, 0) OR NEW.prev IS DISTINCT FROM newest_id THEN
        RAISE EXCEPTION 'records are only appended';
    END IF;
    RETURN NEW;
END $append$;

CREATE FUNCTION {schema}.unchanging() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $unchanging$
BEGIN
    RAISE EXCEPTION 'records and seals are never changed or removed';
END $unchanging$;

CREATE TRIGGER records_append BEFORE INSERT ON {schema}.records FOR EACH ROW EXECUTE FUNCTION {schema}.append_only();
CREATE TRIGGER records_unchanging BEFORE DELETE OR UPDATE OR TRUNCATE ON {schema}.records FOR EACH STATEMENT EXECUTE FUNCTION {schema}.unchanging();
CREATE TRIGGER seals_unchanging BEFORE DELETE OR UPDATE OR TRUNCATE ON {schema}.seals FOR EACH STATEMENT EXECUTE FUNCTION {schema}.unchanging();

-- Also where a session says that it replicates.
ALTER TABLE {schema}.records ENABLE ALWAYS TRIGGER records_append;
ALTER TABLE {schema}.records ENABLE ALWAYS TRIGGER records_unchanging;
ALTER TABLE {schema}.seals ENABLE ALWAYS TRIGGER seals_unchanging;
