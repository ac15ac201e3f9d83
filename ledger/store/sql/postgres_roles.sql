-- Two roles without a login, to be granted to people: one that may only append, one that may only read.
CREATE ROLE {append} NOLOGIN;
CREATE ROLE {read} NOLOGIN;
GRANT USAGE ON SCHEMA {schema} TO {append}, {read};
GRANT SELECT ON {schema}.about, {schema}.records, {schema}.seals TO {append}, {read};
GRANT INSERT ON {schema}.records, {schema}.seals TO {append};
