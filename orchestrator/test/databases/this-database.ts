/** Restricts pg_locks to the connected database, because tests of other files use other databases of the same server. */
export const inThisDatabase = 'database = (select oid from pg_database where datname = current_database())';
