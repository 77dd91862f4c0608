import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ChainedEvent } from '@muster/protocol/http';
import { expect } from 'vitest';
import { musterHere } from '../cli/test/process.ts';
import { eventually } from './eventually.ts';
import { test } from './harness.ts';

/**
 * Runs CLI commands against a real orchestrator and agent. The commands run in this process, which validates their
 * `--json` output against their schemas. A command that follows events does not exit and therefore runs in a separate
 * process.
 */
test('CLI commands for tags, modules, operations, state, operators, windows, kinds, metrics, events, and audit log work', async ({
  stage,
}) => {
  const orchestrator = await stage.orchestrator({ env: { MUSTER_METRICS_POLL_INTERVAL: '1' } });
  const key = join(stage.folder('keys'), 'operator.key');
  writeFileSync(key, orchestrator.operator.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  const certificate = new X509Certificate(readFileSync(join(orchestrator.dataDir, 'api.crt')));
  const env = Object.fromEntries(
    Object.entries(
      stage.environment({
        MUSTER_URL: orchestrator.url,
        MUSTER_KEY_FILE: key,
        MUSTER_FINGERPRINT: certificate.fingerprint256,
      }),
    ).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const muster = async (...args: string[]) => {
    const ran = await musterHere(args, env);
    expect(ran.exit, `muster ${args.join(' ')}\n${ran.stderr}${ran.stdout}`).toBe(0);
    return ran.stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await muster(...args, '--json'));

  // Follows events from before the agent exists until after the orchestrator restarts.
  const follower = stage.run('events', ['events', '--json'], env);
  const seen = () => follower.events('audit').map(({ data }) => data as ChainedEvent);
  await muster('agents', 'list');
  await eventually('the follower receives events', async () =>
    // Causes an event, because the follower receives only events that occur after it connects.
    (await json('web-login')) && seen().some(({ event_type }) => event_type === 'auth.web_login_requested')
      ? true
      : null,
  );
  const config = join(stage.folder('config'), 'agent.yml');
  writeFileSync(config, 'metrics: { collection_interval: 1 }\n');
  const agent = await stage.agent(orchestrator, 'web-1', { flags: ['--config', config] });

  await muster('tags', 'set', 'web-1', 'role=web', 'site=paris');
  expect(await json('tags', 'list')).toEqual({
    tags: { role: ['web'], site: ['paris'] },
    counts: { role: { web: 1 }, site: { paris: 1 } },
  });
  await muster('tags', 'replace', 'web-1', 'role=db', '--yes');
  expect(await json('selectors', 'match', 'role=db !site')).toEqual({ matches: [agent.nodeId] });
  expect(await json('agents', 'attributes', 'web-1')).toMatchObject({ platform: 'linux' });

  const file = join(stage.dir, 'site.yml');
  const motd = (text: string) =>
    `name: site\nsupports: [{ platform: linux }]\nresources:\n  - id: a\n    resource: { file-unix: { path: ${join(stage.dir, 'a')}, content: ${text} } }\n  - id: b\n    depends_on: [a]\n    resource: { file-unix: { path: ${join(stage.dir, 'b')}, content: x } }\n`;
  writeFileSync(file, motd('7'));
  const faulty = await musterHere(['modules', 'check', file], env);
  expect(faulty.exit).toBe(1);
  expect(faulty.stdout).toMatch(/^\S+site\.yml:5:\d+ .*\n[\s\S]*\n> 5 \| .*\n +\| +\^\n/);
  writeFileSync(file, motd('one'));
  expect(await json('modules', 'check', file)).toMatchObject({ valid: true });
  await muster('modules', 'upload', file);
  writeFileSync(file, motd('two'));
  expect(await json('modules', 'diff', 'site', '--file', file)).toMatchObject({ equal: false, from: { revision: 1 } });
  await muster('modules', 'upload', file);
  expect(await muster('modules', 'diff', 'site')).toMatch(/^-.*content: one.*\n\+.*content: two/m);
  expect(await json('modules', 'history', 'site')).toMatchObject([{ revision: 2 }, { revision: 1 }]);
  expect(await muster('modules', 'deps', 'site', '--agent', 'web-1')).toMatch(
    /1 +site\/a .*\n2 +site\/b .*\n +└ after site\/a/,
  );
  const { operation_id } = await json('apply', 'web-1', '-m', 'site', '--yes');
  expect(await json('operations', 'follow', operation_id)).toMatchObject({ status: 'succeeded' });
  expect(await json('state', 'show', 'web-1')).toMatchObject({
    applied: [{ id: 'a' }, { id: 'b' }],
    snapshot_operation_id: operation_id,
  });
  const { drift_id } = await json('drift', 'web-1');
  expect(await json('drift', '--record', drift_id)).toMatchObject({ status: 'in_sync' });

  const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea grace@laptop';
  const { operator_id } = await json('operator', 'add', 'grace', '--from-ssh', line);
  expect(await json('operator', 'remove', 'grace', '--yes')).toEqual({
    removed: [operator_id],
    ended: [
      {
        operator: expect.objectContaining({ operator_id }),
        ended: { enrolment_tokens: [], sessions: 0, terminals: [], web_logins: 0 },
        operators_added: [],
        left: { modules: [], assignments: [], channels: [], runs: [], operations: [] },
      },
    ],
  });
  expect(await json('operator', 'list', '--all')).toMatchObject([{ username: 'ada' }, { username: 'grace' }]);

  const window = await json('windows', 'add', 'updates', '--for', '1h');
  expect(await json('windows', 'update', window.id, '--for', '3h')).toMatchObject({
    ends_at: window.starts_at + 10_800,
  });
  expect(await json('windows', 'show', window.id)).toMatchObject({ ends_at: window.starts_at + 10_800 });
  expect(await muster('settings', 'show', 'bootstrap_username')).toMatch(/bootstrap_username +ada +flag/);

  expect((await json('kinds', 'list')).map(({ name }: { name: string }) => name)).toContain('file-unix');
  expect(await json('kinds', 'show', 'sysctl')).toMatchObject({
    platforms: ['linux'],
    fields: [{ name: 'key' }, {}, {}],
  });
  const unknown = await musterHere(['kinds', 'show', 'sysctrl'], env);
  expect(unknown).toMatchObject({ exit: 1, stderr: expect.stringContaining('did you mean "sysctl"?') });

  await eventually('the orchestrator has a sample of the agent', async () =>
    (await json('metrics', 'list'))[agent.nodeId] ? true : null,
  );
  expect(await json('metrics', 'show', 'web-1')).toMatchObject({ node_id: agent.nodeId });
  expect(await muster('metrics', 'show', 'web-1')).toMatch(/\ncpu .*%\n?/);

  // The follower continues after the orchestrator restarts, and has received all events in order.
  await orchestrator.stop();
  await orchestrator.start();
  await muster('tags', 'set', 'web-1', 'last=one');
  await eventually('the follower has received the last event', async () =>
    seen().some(({ summary }) => summary.includes('last=one')) ? true : null,
  );
  const out = join(stage.dir, 'audit.jsonl');
  await muster('audit', 'export', '-o', out);
  const log = readFileSync(out, 'utf8')
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text) as ChainedEvent);
  const positions = seen().map(({ place }) => place);
  expect(positions).toEqual(positions.map((_, at) => (positions[0] ?? 0) + at));
  expect(seen()).toEqual(log.filter(({ place }) => place >= (positions[0] ?? 0) && place <= (positions.at(-1) ?? 0)));
  expect(await json('audit', 'list', '--agent', 'web-1', '--type', 'state.applied', '--since', '1h')).toMatchObject({
    events: [{ metadata: { operation_id } }],
    has_more: false,
  });
  expect(await json('audit', 'verify')).toMatchObject({ ok: true, fault: null });
  // Event times are whole seconds, so events in the current second are not older than `0s`.
  await eventually('a prune would delete all events that the follower has received, and earlier ones', async () =>
    (await json('audit', 'prune', '--before', '0s', '--dry-run')).would_delete > positions.length ? true : null,
  );
  expect(await json('audit', 'prune', '--before', '0s', '--yes')).toMatchObject({ deleted: expect.any(Number) });
  expect(await json('audit', 'verify')).toMatchObject({ ok: true, anchor: { place: expect.any(Number) } });
  expect(await json('audit', 'retention', 'set', '30', '--yes')).toEqual({ retention_days: 30 });
  expect(await json('audit', 'retention', 'clear', '--yes')).toEqual({ retention_days: null });
});
