import { Client } from 'pg';
import { shardOf } from '../../orchestrator/src/domain/runs/run-shards.ts';
import { sharedWorkPrefix } from '../../orchestrator/src/store/postgres/postgres-settings.ts';
import type { Claimed, FencedWrite } from './history.ts';

/**
 * Records, in the database itself, which process claimed an agent's link or a lease, and which process made a write
 * that requires such a claim. Triggers add rows to a table without an index, which causes no conflicts between
 * serializable transactions.
 */
const setUp = `
create schema faults;
create table faults.log (kind text, fence text, holder text, what text, began timestamptz);
create function faults.record(kind text, fence text, holder text, what text) returns void language sql as
  $$ insert into faults.log values (kind, fence, holder, what, now()) $$;
create function faults.writer() returns text language sql as $$ select current_setting('application_name') $$;

create function faults.process() returns trigger language plpgsql as $$ begin
  perform faults.record('process', new.incarnation, faults.writer(), new.name);
  return null;
end $$;
create trigger faults after insert on replicas for each row execute function faults.process();

create function faults.link() returns trigger language plpgsql as $$ begin
  perform faults.record('claimed', 'link:' || new.node_id, coalesce(new.link_incarnation, ''), '');
  return null;
end $$;
create trigger faults_insert after insert on agents for each row execute function faults.link();
create trigger faults_update after update on agents for each row
  when (old.link_incarnation is distinct from new.link_incarnation) execute function faults.link();

create function faults.lease() returns trigger language plpgsql as $$ begin
  perform faults.record('claimed', 'lease:' || new.name, new.holder, '');
  return null;
end $$;
create trigger faults after insert or update on leases for each row execute function faults.lease();

create function faults.report() returns trigger language plpgsql as $$ begin
  perform faults.record('write', 'link:' || new.node_id, faults.writer(), 'report ' || new.seq);
  return null;
end $$;
create trigger faults after insert or update on spool_ack for each row execute function faults.report();

create function faults.dispatch() returns trigger language plpgsql as $$ begin
  perform faults.record('write', 'link:' || new.node_id, faults.writer(), 'dispatch of ' || new.operation_id);
  return null;
end $$;
create trigger faults after update on operations for each row
  when (old.dispatched_at is null and new.dispatched_at is not null) execute function faults.dispatch();

create function faults.chain() returns trigger language plpgsql as $$ begin
  perform faults.record('write', 'lease:audit', faults.writer(), 'audit event ' || new.place);
  return null;
end $$;
create trigger faults after update on audit_chain for each row
  when (new.name = 'head') execute function faults.chain();

create function faults.run() returns trigger language plpgsql as $$ begin
  perform faults.record('write', 'run:' || new.run_id, faults.writer(), 'end of run ' || new.run_id);
  return null;
end $$;
create trigger faults after update on runs for each row
  when (old.finished_at is null and new.finished_at is not null) execute function faults.run();

insert into faults.log select 'claimed', 'lease:' || name, holder, '', now() from leases;
insert into faults.log select 'process', incarnation, application_name, name, now() from replicas,
  (select distinct application_name from pg_stat_activity where starts_with(application_name, '${sharedWorkPrefix}')) as own;
`;

async function connected<T>(url: string, act: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

/** Makes the server record when transactions are committed, from its next start on. */
export const recordCommitTimes = (url: string): Promise<unknown> =>
  connected(url, (client) => client.query('alter system set track_commit_timestamp = on'));

/**
 * Begins to record. Exactly one replica must be running, because a replica is otherwise identified only when it joins.
 */
export const startDatabaseLog = (url: string): Promise<unknown> => connected(url, (client) => client.query(setUp));

interface Row {
  kind: 'process' | 'claimed' | 'write';
  fence: string;
  holder: string;
  what: string;
  began: number;
  committed: number;
  transaction: string;
}

/** Returns the recorded claims and writes. */
export async function readDatabaseLog(url: string): Promise<(Claimed | FencedWrite)[]> {
  const { rows } = await connected(url, (client) =>
    client.query<Row>(
      `select kind, fence, holder, what, xmin::text as transaction, extract(epoch from began)::float8 * 1000 as began,
         extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as committed from faults.log`,
    ),
  );
  const incarnations = new Map(
    rows.flatMap((row) => (row.kind === 'process' ? [[row.holder, row.fence] as const] : [])),
  );
  return rows.flatMap(({ kind, fence, holder, what, began, committed, transaction }): (Claimed | FencedWrite)[] => {
    if (kind === 'claimed') return [{ type: 'claimed', fence, holder, committed, transaction }];
    const incarnation = incarnations.get(holder);
    if (kind === 'process' || incarnation === undefined) return [];
    const [, run] = /^run:(.*)$/.exec(fence) ?? [];
    const claim = run === undefined ? fence : `lease:${shardOf(run)}`;
    return [{ type: 'fenced_write', fence: claim, holder: incarnation, began, transaction, what }];
  });
}
