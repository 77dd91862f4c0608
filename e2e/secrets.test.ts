import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  applyAgent,
  applyAssignment,
  checkDrift,
  createAssignment,
  createSecret,
  getOperation,
  getOperationOutput,
  getRun,
  getSecret,
  getState,
  latestDrift,
  listAudit,
  listNotifications,
  listOperations,
  listSecrets,
  planAgent,
  removeAssignment,
  removeSecret,
  rotateSecretsKey,
  updateSecret,
  uploadModule,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import { test } from './harness.ts';

/** As programs may write it: as it is, in JSON, in an address, in base64 wherever it begins, in hexadecimal. */
function formsOf(value: string): string[] {
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.from(`${'x'.repeat(offset)}${value}`)
      .toString('base64')
      .replace(/=+$/, '');
    // What the characters around it have a share in is not the value's own.
    return text.slice(offset === 0 ? 0 : 4, -4);
  });
  const json = JSON.stringify(value).slice(1, -1);
  return [value, json, encodeURIComponent(value), Buffer.from(value).toString('hex'), ...base64];
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

test('a secret is on the machine that may have it, and nowhere else', { timeout: 120_000 }, async ({ stage }) => {
  const flags = ['--log-level', 'debug'];
  const orchestrator = await stage.orchestrator({ flags });
  const agent = await stage.agent(orchestrator, 'web-1', { flags, tags: { role: 'web' } });
  const other = await stage.agent(orchestrator, 'db-1', { flags, tags: { role: 'db' } });

  const canaries = ['kanarie "one"/+ü&', 'kanarie \\two\\ =?é', 'kanarie-three\nof two-lines'].map(
    (text, i) => `${text}${i}9f3c71`,
  );
  const [one = '', two = '', three = ''] = canaries;
  /** Every answer, refusals included. */
  const answers: string[] = [];
  const call: Client = async (route, input) => {
    try {
      const answer = await orchestrator.call(route, input);
      answers.push(`${route.id} ${JSON.stringify(answer ?? null)}`);
      return answer;
    } catch (error) {
      if (error instanceof ApiError) answers.push(`${route.id} ${JSON.stringify(error.problem)}`);
      throw error;
    }
  };
  const root = stage.folder('site');
  writeFileSync(join(root, 'plain'), '');
  const file = (id: string, path: string, content: string) => ({
    id,
    resource: { 'file-unix': { path: join(root, path), content } },
  });
  const script = (id: string, apply: string) => ({ id, resource: { script: { program: 'sh', apply } } });
  const upload = (resources: object[]) =>
    call(uploadModule, {
      body: { name: 'site', content: JSON.stringify({ name: 'site', supports: [{ platform: 'linux' }], resources }) },
    });
  const params = { node_id: agent.nodeId };
  const nothing = { params, body: { modules: [] } };

  for (const [name, value] of Object.entries({ one, two, three }))
    await call(createSecret, { body: { name, value, restriction: { tags: 'role=web' } } });
  await expect(call(createSecret, { body: { name: 'one', value: one } })).rejects.toThrow();
  await expect(call(createSecret, { body: { name: '1', value: one, description: 7 } as never })).rejects.toThrow();

  // All that may go wrong with a secret in it: a script that says it and fails, a file that cannot be written.
  await upload([
    file('conf', 'conf', 'user=a\npassword=${{ secrets.one }}\n'),
    file('key', 'key', '${{ secrets.three }}'),
    script(
      'loud',
      "cat <<'END'\n${{ secrets.one }}\n${{ secrets.three }}\nEND\ncat >&2 <<'END'\n${{ secrets.two }}\nEND\nexit 3\n",
    ),
    file('impossible', 'plain/file', '${{ secrets.two }}'),
    {
      id: 'owner',
      resource: { 'file-unix': { path: join(root, 'owned'), content: '${{ secrets.two }}', validate: 'cat %; false' } },
    },
  ]);
  await call(createAssignment, { body: { name: 'web', modules: ['site'], selector: 'role=web' } });
  const plan = await call(planAgent, nothing);
  expect(plan.resources.find(({ id }) => id === 'conf')).toMatchObject({ sensitive: true, diff: null });
  const failed = await call(applyAgent, nothing);
  expect(failed).toMatchObject({ status: 'failed', summary: { changed: 2, failed: 3 } });
  expect(readFileSync(join(root, 'conf'), 'utf8')).toBe(`user=a\npassword=${one}\n`);
  expect(readFileSync(join(root, 'key'), 'utf8')).toBe(three);
  const { output } = await call(getOperationOutput, { params: { ...params, operation_id: failed.operation_id } });
  expect(Object.values(output)).toMatchObject([{ stdout: '(sensitive)', stderr: '(sensitive)', exit_code: 3 }]);

  // Another machine asks for it, and does not get it.
  const refused = call(applyAgent, { params: { node_id: other.nodeId }, body: { modules: ['site'] } });
  await expect(refused).rejects.toThrow('may not go to this agent');

  // It goes well, drifts, changes, and goes away.
  await upload([
    file('conf', 'conf', 'user=a\npassword=${{ secrets.one }}\n'),
    file('key', 'key', '${{ secrets.three }}'),
  ]);
  expect(await call(applyAgent, nothing)).toMatchObject({ status: 'succeeded' });
  writeFileSync(join(root, 'conf'), `${one} and more\n`);
  expect(await call(checkDrift, { params })).toMatchObject({
    status: 'drifted',
    resources: [{ id: 'conf', diff: null }],
  });
  await call(updateSecret, { params: { name: 'one' }, body: { value: two } });
  const run = await call(applyAssignment, { params: { name: 'web' } });
  expect(run).toMatchObject({ status: 'succeeded' });
  await call(getRun, { params: { run_id: run.run_id } });
  expect(readFileSync(join(root, 'conf'), 'utf8')).toBe(`user=a\npassword=${two}\n`);
  expect(await call(rotateSecretsKey, {})).toMatchObject({ reencrypted: 3, unreadable: [] });
  await orchestrator.stop();
  await orchestrator.start();
  await agent.connected(2);
  await call(planAgent, nothing);
  await upload([file('conf', 'conf', 'open\n')]);
  await call(applyAgent, nothing);
  await call(removeAssignment, { params: { name: 'web' } });
  await call(applyAgent, nothing);
  await call(removeSecret, { params: { name: 'three' } });

  for (const { operation_id } of (await call(listOperations, {})).operations)
    await call(getOperation, { params: { operation_id } });
  await call(latestDrift, { params });
  await call(getState, { params });
  await call(listSecrets, {});
  await call(getSecret, { params: { name: 'one' } });
  await call(listNotifications, {});
  const { events } = await call(listAudit, { query: { limit: '500' } });
  expect(new Set(events.map(({ event_type }) => event_type))).toContain('secret.key_rotated');

  await orchestrator.stop();
  const logs = [orchestrator, agent, other].map(({ program }) => program.lastLines(200));
  for (const log of logs) expect(log.length).toBeGreaterThan(3);
  const kept = filesIn(orchestrator.dataDir);
  expect(kept.some((path) => path.endsWith('muster.db'))).toBe(true);
  const places: [string, string][] = [
    ...answers.map((answer): [string, string] => [answer.slice(0, 200), answer]),
    ...logs.map((lines): [string, string] => ['a log', lines.join('\n')]),
    ...kept.map((path): [string, string] => [path, readFileSync(path, 'latin1')]),
    ...filesIn(other.dataDir).map((path): [string, string] => [path, readFileSync(path, 'latin1')]),
  ];
  const told = canaries.flatMap((value) =>
    [...formsOf(value), ...value.split('\n').filter((line) => line !== value)].flatMap((form) =>
      // Files are read byte by byte.
      [form, Buffer.from(form).toString('latin1')].flatMap((text) =>
        places.filter(([, content]) => content.includes(text)).map(([place]) => `${JSON.stringify(form)} in ${place}`),
      ),
    ),
  );
  expect(told).toEqual([]);

  // What the machine itself keeps, only its owner may read.
  for (const path of filesIn(agent.dataDir)) expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
  expect(statSync(agent.dataDir).mode & 0o077).toBe(0);
});
