import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect } from 'vitest';
import { muster } from '../tools/suite/cli.ts';
import { transportTo } from './client.ts';
import { Orchestrator, type Stage } from './harness.ts';

/** Three replicas on one PostgreSQL database. */
export interface ReplicaSet {
  readonly a: Orchestrator;
  readonly b: Orchestrator;
  readonly c: Orchestrator;
}

/**
 * Starts the first replica, and then the other replicas with the keys of the first.
 * @param url the database
 * @param env additional environment variables for each replica
 */
export async function startReplicas(stage: Stage, url: string, env: NodeJS.ProcessEnv = {}): Promise<ReplicaSet> {
  const create = (name: string) =>
    new Orchestrator(stage, stage.folder(`replica-${name}`), {
      env: { MUSTER_DATABASE_URL: url, MUSTER_REPLICA_NAME: name, ...env },
    });
  const [a, b, c, stranger] = [create('a'), create('b'), create('c'), create('stranger')] as const;
  await a.start();
  const keys = join(stage.dir, 'keys.age');
  musterOrchestrator('share', a.dataDir, keys);
  for (const { dataDir } of [b, c]) musterOrchestrator('join', dataDir, keys);
  const refused = stranger.start().catch(() => stranger.program.ended);
  await Promise.all([b.start(), c.start()]);
  expect(await refused).toMatchObject({ code: 1 });
  expect(stranger.program.lastLines(20).join('\n')).toContain(
    'the other replicas have different keys: copy identity.key, api.key and api.crt, secrets.keys',
  );
  return { a, b, c };
}

/** Runs `muster orchestrator share` or `join`. */
export function musterOrchestrator(command: 'share' | 'join', dataDir: string, file: string): void {
  const { status, stderr } = spawnSync(muster, ['orchestrator', command, '--data-dir', dataDir, file], {
    encoding: 'utf8',
    env: { ...process.env, MUSTER_SHARE_PASSPHRASE: 'correct horse battery staple' },
  });
  expect(stderr).toContain(command === 'share' ? 'secrets.keys of the orchestrator' : 'installed identity.key');
  expect(status).toBe(0);
}

export const transportOf = ({ dataDir }: Orchestrator) =>
  transportTo(() => readFileSync(join(dataDir, 'api.crt'), 'utf8'));

/** Follows the events of a replica. */
export function followEvents(replica: Orchestrator, token: string): { readonly text: string; close(): void } {
  const events = { text: '', close: () => {} };
  const outgoing = request(
    `${replica.url}/api/v1/events`,
    { headers: { authorization: `Bearer ${token}` }, ca: readFileSync(join(replica.dataDir, 'api.crt'), 'utf8') },
    (answer) => {
      answer.on('data', (piece: Buffer) => {
        events.text += piece.toString();
      });
      answer.on('error', () => {});
    },
  );
  outgoing.on('error', () => {});
  outgoing.end();
  events.close = () => outgoing.destroy();
  return events;
}
