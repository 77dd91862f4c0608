import { text } from 'node:stream/consumers';
import type { Client } from '@muster/protocol/client';
import {
  exportAudit,
  getRun,
  getTranscript,
  listAgents,
  listOperations,
  listReplicas,
  verifyAudit,
} from '@muster/protocol/http';
import { ended, eventually } from '../eventually.ts';
import { type Clients, patience, readTag, recordOperation, recordRun } from './clients.ts';
import { readDatabaseLog } from './database-log.ts';
import { callsOf } from './history.ts';
import { recordEvent, type StreamPlace } from './watchers.ts';

/** Reads the final state at every replica, after the faults. */

interface Replica {
  readonly name: string;
  readonly call: Client;
}

/** Returns the IDs in the answers to acknowledged requests of one kind. */
const acknowledged = ({ recorder }: Clients, kind: 'apply' | 'run'): string[] =>
  callsOf(recorder.entries).flatMap(({ invoked, outcome }) =>
    invoked.request.kind === kind && outcome?.type === 'succeeded' ? [outcome.id!] : [],
  );

/** Waits until all replicas serve, all agents are connected, and all acknowledged work has ended. */
export async function settle(clients: Clients, agents: number): Promise<void> {
  const replicas = clients.atReplicas();
  for (const { name, call } of replicas) {
    await eventually(`${name} sees all replicas ready`, async () => {
      const seen = await call(listReplicas, { signal: patience() });
      return seen.length === replicas.length && seen.every(({ ready }) => ready) ? true : null;
    });
    await eventually(`${name} sees all agents connected`, async () => {
      const seen = await call(listAgents, { query: { status: 'approved' }, all: true, signal: patience() });
      return seen.filter(({ connected }) => connected).length === agents ? true : null;
    });
  }
  const { call } = replicas[0]!;
  for (const id of acknowledged(clients, 'apply')) await ended(call, id);
  for (const run_id of acknowledged(clients, 'run'))
    await eventually(`the run ${run_id} has ended`, async () => {
      const { finished_at } = await call(getRun, { params: { run_id }, signal: patience() });
      return finished_at === null ? null : true;
    });
  await eventually('all events are in the chain', async () =>
    (await call(verifyAudit, {})).unchained === 0 ? true : null,
  );
}

/** Records the final state, as each replica shows it. */
export async function readEverything(
  clients: Clients,
  {
    keys,
    sessions,
    streams,
  }: { keys: readonly string[]; sessions: ReadonlyMap<string, number>; streams: StreamPlace[] },
): Promise<void> {
  const { recorder, stage } = clients;
  const replicas = clients.atReplicas();
  for (const replica of replicas) {
    for (const key of keys)
      await eventually(`${replica.name} answers`, async () => ((await readTag(clients, replica, key)) ? true : null));
    await readOperations(clients, replica);
    for (const run_id of acknowledged(clients, 'run')) {
      const at = recorder.now;
      recordRun(recorder, replica.name, at, await replica.call(getRun, { params: { run_id } }));
    }
    const { ok, fault } = await replica.call(verifyAudit, {});
    recorder.record({ type: 'chain', at: recorder.now, replica: replica.name, ok, fault: fault?.message ?? null });
    await readExport(clients, replica);
  }
  const { head } = await replicas[0]!.call(verifyAudit, {});
  for (const stream of streams)
    await eventually(`the stream of ${stream.name} has all events`, async () =>
      (stream.place ?? 0) >= head.place ? true : null,
    );
  for (const [session, open] of sessions) {
    const params = { session_id: session };
    const { body } = await replicas[0]!.call(getTranscript, { params, query: { format: 'raw' } });
    recorder.record({ type: 'transcript', session, open, text: await text(body) });
  }
  recorder.record(...(await readDatabaseLog(stage.databaseUrl)));
}

async function readOperations({ recorder }: Clients, { name, call }: Replica): Promise<void> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const at = recorder.now;
    const query = { limit: '500', ...(cursor === undefined ? {} : { cursor }) };
    const page = await call(listOperations, { query });
    for (const operation of page.operations) recordOperation(recorder, name, at, operation);
    cursor = page.next_cursor;
  }
}

async function readExport({ recorder }: Clients, { name, call }: Replica): Promise<void> {
  const { body } = await call(exportAudit, {});
  for (const line of (await text(body)).split('\n'))
    if (line !== '') recordEvent(recorder, name, 'export', JSON.parse(line));
}
