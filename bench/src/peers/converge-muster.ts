import { mkdirSync, rmSync } from 'node:fs';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { removeDirectory, startAgent } from '../../../agent/src/converge/test/agent.ts';
import { directory, file, operation } from '../../../agent/src/converge/test/desired.ts';
import { filesAt, listed, type Workload, workFolder } from './converge-workload.ts';

/**
 * Measures one round of Muster's state engine in a new process, from when it receives an operation until its last
 * result is on disk. Prints the milliseconds of the first and the second run as JSON.
 *
 *     node converge-muster.ts files|machine
 */
const workload = process.argv[2] as Workload;
const root = `${workFolder}/muster`;
const dataDir = '/var/lib/muster-bench';

const named = <T extends 'package-apt' | 'service-systemd'>(type: T, body: ResourceBodies[T]): ResolvedResource => ({
  ...{ key: `${type}:${body.name}`, module: 'bench', id: null, name: null, type, identity: body.name, body },
  ...{ depends_on: [], reload_on: [], restart_on: [], rerun_on: [], sensitive_fields: [] },
});

const desired = (): ResolvedResource[] =>
  workload === 'files'
    ? filesAt(root).map(({ path, content }) =>
        content === null ? directory(path, { mode: '0755' }) : file(path, { content, mode: '0644' }),
      )
    : [
        ...listed('packages').map((name) => named('package-apt', { name })),
        ...listed('units').map((name) => named('service-systemd', { name, enabled: true, running: true })),
      ];

rmSync(dataDir, { recursive: true, force: true });
mkdirSync(dataDir, { recursive: true, mode: 0o700 });
const agent = await startAgent(dataDir);
const timed = async (): Promise<{ ms: number; changed: number }> => {
  const message = operation('apply', desired());
  const startedAt = performance.now();
  const { finished, results } = await agent.run(message);
  const ms = performance.now() - startedAt;
  if (finished.status !== 'succeeded')
    throw new Error(
      results.find(({ status }) => status === 'failed')?.message ??
        finished.error ??
        `the operation ended with status ${finished.status}`,
    );
  return { ms, changed: results.filter(({ status }) => status === 'changed').length };
};
const first = await timed();
const again = await timed();
if (again.changed !== 0) throw new Error(`the second run changed ${again.changed} resources`);
await agent.stop();
removeDirectory(dataDir);
console.log(JSON.stringify({ first: first.ms, again: again.ms }));
