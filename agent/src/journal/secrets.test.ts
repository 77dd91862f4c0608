import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../lib/src/clock.ts';
import { file, operation } from '../converge/test/desired.ts';
import { useAgent } from '../converge/test/harness.ts';
import { Journal } from './journal.ts';

const h = useAgent();

/** Returns all files of the agent with their modes. */
const storedFiles = () =>
  readdirSync(h.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const holding = (text: string) => storedFiles().filter((path) => readFileSync(path, 'utf8').includes(text));

test('removes a secret when the journal is rewritten after the resource is removed', async () => {
  const declared = file(`${h.root}/f`, { content: 'password=hunter2\n' }, { sensitive_fields: ['content'] });
  await h.agent.run(operation('apply', [declared]));
  expect(holding('hunter2')).not.toEqual([]);
  for (const path of storedFiles()) expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
  for (const path of [h.dataDir, `${h.dataDir}/state`, `${h.dataDir}/state/before`])
    expect([path, statSync(path).mode & 0o777]).toEqual([path, 0o700]);

  // The rewritten journal still contains the secret, because drift is measured against the snapshot.
  await rewriteJournal();
  expect(holding('hunter2')).not.toEqual([]);
  await h.restart();
  await h.agent.run(operation('apply', []));
  // The secret is no longer needed, but remains in the file until the next rewrite.
  h.agent.engine.spool.acknowledge(Math.max(...[...h.agent.engine.spool.pending(0)].map(({ seq }) => seq)));
  await h.restart();
  expect(holding('hunter2')).not.toEqual([]);
  await rewriteJournal();
  expect(holding('hunter2')).toEqual([]);
  await h.restart();
});

/** Rewrites the journal, as the agent does after the journal has grown. */
async function rewriteJournal(): Promise<void> {
  await h.agent.stop();
  const journal = await Journal.open(h.dataDir, systemClock, () => {}, console.error);
  await journal.compact();
  await journal.close();
}
