import { MusterError } from '@muster/protocol';
import { parseModule } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { type DatabaseFixture, describeAnyDatabase } from '../../../test/databases/databases.ts';
import { type Domain, newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { getOperation, getOutput, getRun } from '../../../test/reading.ts';
import { SecretKeys } from '../../identity/secret-keys.ts';
import { startUpkeep } from '../../schedule/upkeep.ts';
import { withOverrides } from '../../store/database.ts';
import { channelById } from '../../store/queries/channels.ts';
import { insertSecret } from '../../store/queries/secrets.ts';
import { defineQuery } from '../../store/query.ts';
import { statement } from '../../store/transaction.ts';
import { createAgentLinks } from '../agent-link/agent-link-service.ts';
import { putOneTag } from '../agents/tags.ts';
import { listAudit } from '../audit/audit.ts';
import { prunePayloads } from '../fleet/retention.ts';
import { createAssignment, updateAssignment } from '../modules/assignments.ts';
import { resolvePayload } from '../modules/desired-set.ts';
import { uploadModule } from '../modules/modules.ts';
import { createChannel, targetOf } from '../notifications/channels.ts';
import { submitOperation } from '../operations/operations.ts';
import { startRun } from '../runs/runs.ts';
import { dropFormerSecrets } from './former-secrets.ts';
import { createSecretAccess, secretValues } from './secret-access.ts';
import { missingKey, rotateSecretsKey } from './secret-rotation.ts';
import { changeSecret, createSecret, getSecret, listSecrets, removeSecret } from './secrets.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );

const using = (secret: string, name = 's', path = '/k') => `name: ${name}
supports: [{ platform: linux }]
resources:
  - id: k
    resource: { file-unix: { path: ${path}, content: "\${{ ${secret} }}" } }
`;

async function open(fixture: DatabaseFixture) {
  const domain = await openDomain(fixture);
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  const { context } = domain;
  await uploadModule(context, actor, 's', using('secrets.x'));
  const submit = (modules = ['s'], queue = false) =>
    submitOperation(context, actor, 'web-1', { kind: 'apply', modules, queue });
  const holder = { node_id: agent.id, tags: {}, attributes: {} };
  const decrypted = async (name: string) => (await secretValues(context, [name], holder)).values.get(name);
  /** Returns the version of a secret, as a plan would read it. */
  const version = async (name: string) => {
    const parsed = parseModule(using(`secrets.${name} | default('')`));
    if (!parsed.ok) throw new Error(parsed.faults[0]?.message);
    const payload = resolvePayload(
      [parsed.module],
      { modules: [], layers: {}, keep: [] },
      {
        ...holder,
        name: 'web-1',
        attributes: { platform: 'linux' },
      },
    );
    return (await createSecretAccess(context).allow(payload, holder))[name];
  };
  return { domain, context, actor, agent, submit, plain: decrypted, version };
}

/** Returns the content that the agent receives, or the outcome of the operation. */
async function sent({ links, context }: Domain, nodeId: string, operationId: string): Promise<unknown> {
  const next = await links.nextOperation(nodeId);
  return next === null ? getOperation(context, operationId) : next.operation.resources[0]?.body;
}

const hour = 3_600_000;

describeAnyDatabase('secrets', (fixture) => {
  test('creates, changes, and removes secrets, and never shows their values', async () => {
    const { context, actor, domain, plain, version } = await open(fixture);
    const now = new Date(domain.clock.now()).toISOString();
    const expires = domain.clock.now() + hour;
    const made = await createSecret(context, actor, {
      name: 'x',
      value: 'hunter2 🗝\n-----\u0007',
      description: 'of x',
      expires_at: expires,
      restriction: { tags: { role: 'web', note: 'a "b" \\c' } },
    });
    expect(made).toEqual({
      name: 'x',
      description: 'of x',
      expires_at: new Date(expires).toISOString(),
      restriction: { node_ids: null, tags: 'note="a \\"b\\" \\\\c" role=web' },
      created_at: now,
      created_by: actor.id,
      updated_at: now,
      updated_by: actor.id,
    });
    expect(await getSecret(context, 'x')).toEqual(made);
    expect(await code(createSecret(context, actor, { name: 'x', value: 'v' }))).toBe('name_taken');

    await domain.clock.advance(1000);
    expect(await changeSecret(context, actor, 'x', {})).toEqual(made);
    const other = await changeSecret(context, actor, 'x', { description: '', expires_at: null });
    expect(other).toMatchObject({ description: null, expires_at: null, restriction: made.restriction });
    expect(other.updated_at).not.toBe(made.updated_at);
    const open_ = await changeSecret(context, actor, 'x', { restriction: {} });
    expect(open_.restriction).toBeNull();
    expect(await plain('x')).toBe('hunter2 🗝\n-----\u0007');
    await changeSecret(context, actor, 'x', { value: 'hunter3' });
    expect(await plain('x')).toBe('hunter3');
    expect([await version('x'), await version('y')]).toEqual([2, 0]);

    await removeSecret(context, actor, 'x');
    expect(await code(getSecret(context, 'x'))).toBe('secret_not_found');
    expect(await code(removeSecret(context, actor, 'x'))).toBe('secret_not_found');
    expect(await code(changeSecret(context, actor, 'x', { value: 'v' }))).toBe('secret_not_found');
    // A new secret with the same name is a different secret.
    await createSecret(context, actor, { name: 'x', value: 'hunter4' });
    expect(await version('x')).toBe(3);

    const { events } = await listAudit(context, { category: 'secret' });
    expect(events.map(({ event_type }) => event_type)).toEqual([
      'secret.created',
      'secret.removed',
      ...['secret.updated', 'secret.updated', 'secret.updated', 'secret.created'],
    ]);
    expect(JSON.stringify(events)).not.toContain('hunter');
  });

  test('accepts names of built-in object properties', async () => {
    const { context, actor, plain, version } = await open(fixture);
    for (const name of ['__proto__', 'constructor', 'toString', '_-']) {
      await createSecret(context, actor, { name, value: `of ${name}` });
      expect(await plain(name)).toBe(`of ${name}`);
      expect(await version(name)).toBe(1);
    }
    expect(await code(getSecret(context, 'hasOwnProperty'))).toBe('secret_not_found');
  });

  test('refuses an expiry in the past and an invalid selector', async () => {
    const { context, actor } = await open(fixture);
    const x = { name: 'x', value: 'v' };
    expect(await code(createSecret(context, actor, { ...x, expires_at: context.now() }))).toBe('invalid_input');
    expect(await code(createSecret(context, actor, { ...x, restriction: { tags: 'a b=' } }))).toBe('selector_invalid');
    await createSecret(context, actor, x);
    expect(await code(changeSecret(context, actor, 'x', { expires_at: 1 }))).toBe('invalid_input');
    expect(await code(changeSecret(context, actor, 'x', { restriction: { tags: '=' } }))).toBe('selector_invalid');
  });

  test('lists ten thousand secrets in pages', async () => {
    const { context, actor } = await open(fixture);
    const name = (i: number) => `s${String(i).padStart(5, '0')}`;
    await createSecret(context, actor, { name: name(0), value: 'v' });
    const { sealed, key_id } = (await context.db.get(rawSecret, { name: name(0) })) ?? { sealed: '', key_id: '' };
    const like = {
      sealed,
      key_id,
      version: 1,
      description: null,
      expires_at_ms: null,
      restriction: null,
      now_ms: 1,
      by: '',
    };
    for (let start = 1; start < 10_000; start += 500) {
      const statements = Array.from({ length: Math.min(500, 10_000 - start) }, (_, i) =>
        statement(insertSecret, { name: name(start + i), ...like }),
      );
      await context.db.write({ name: 'many', statements });
    }
    const seen: string[] = [];
    for (let more = true; more; ) {
      const page = await listSecrets(context, { limit: 1000, offset: seen.length });
      seen.push(...page.items.map((secret) => secret.name));
      more = page.more;
    }
    expect(seen).toEqual(Array.from({ length: 10_000 }, (_, i) => name(i)));
  });

  test('gives each of many concurrent changes its own version', async () => {
    const { context, actor, plain, version } = await open(fixture);
    await createSecret(context, actor, { name: 'x', value: 'v0' });
    await Promise.all([1, 2, 3, 4].map((i) => changeSecret(context, actor, 'x', { value: `v${i}` })));
    expect(await version('x')).toBe(5);
    expect(await plain('x')).toMatch(/^v[1-4]$/);
  });

  test('adds secrets at dispatch, and never stores their values in operations', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    await createSecret(context, actor, { name: 'x', value: 'hunter2' });
    const id = await submit();
    expect(await sent(domain, agent.id, id)).toMatchObject({ path: '/k', content: 'hunter2' });
    // A repeated dispatch contains the current value.
    await changeSecret(context, actor, 'x', { value: 'hunter3' });
    expect(await sent(domain, agent.id, id)).toMatchObject({ content: 'hunter3' });
  });

  test('refuses a request with a missing, expired, or restricted secret, and names the secret in the error', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    await uploadModule(context, actor, 't', using('secrets.y', 't', '/t'));
    const faults = await submit(['s', 't']).catch((error: MusterError) => error.errors);
    expect(faults).toEqual([
      { path: '/secrets/x', message: 'there is no secret "x"' },
      { path: '/secrets/y', message: 'there is no secret "y"' },
    ]);
    await createSecret(context, actor, { name: 'x', value: 'v', expires_at: context.now() + hour });
    await createSecret(context, actor, { name: 'y', value: 'v', restriction: { node_ids: [agent.id] } });
    await submit(['s', 't']);
    await changeSecret(context, actor, 'y', { restriction: { node_ids: ['00'.repeat(16)] } });
    await expect(submit(['s', 't'])).rejects.toThrow('the secret "y" is not allowed for this agent');
    await domain.clock.advance(hour);
    await expect(submit()).rejects.toThrow('the secret "x" expired at');
    // A secret with a default is not required.
    await uploadModule(context, actor, 'd', using(`secrets.x | default('plain')`, 'd', '/d'));
    await submit(['d']);
  });

  test('checks the secret named by an assignment’s parameter, and hides its value', async () => {
    const { domain, context, actor, agent } = await open(fixture);
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    const module = using('secret(param.key)', 'p').replace(
      'resources:',
      'parameters: { key: { type: string, format: secret-name } }\nresources:',
    );
    await uploadModule(context, actor, 'p', module);
    await createSecret(context, actor, { name: 'mine', value: 'hunter2', restriction: { node_ids: [agent.id] } });
    await createSecret(context, actor, { name: 'other', value: 'v', restriction: { node_ids: ['00'.repeat(16)] } });
    const parameters = { p: { key: 'other' } };
    await createAssignment(context, actor, { name: 'a', modules: ['p'], selector: 'role=web', parameters });
    const submit = () => submitOperation(context, actor, 'web-1', { kind: 'apply', modules: [], queue: false });
    await expect(submit()).rejects.toThrow('the secret "other" is not allowed for this agent');
    await updateAssignment(context, actor, 'a', { parameters: { p: { key: 'mine' } } });
    await submit();
    const next = await domain.links.nextOperation(agent.id);
    expect(next?.operation.resources[0]).toMatchObject({
      body: { path: '/k', content: 'hunter2' },
      sensitive_fields: ['content'],
    });
  });

  test('requires every part of a restriction to match, and matches no agent with an empty part', async () => {
    const { context, actor, agent, submit } = await open(fixture);
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    await createSecret(context, actor, { name: 'x', value: 'v' });
    const may = async (restriction: Parameters<typeof changeSecret>[3]['restriction']) => {
      await changeSecret(context, actor, 'x', { restriction });
      return (await code(submit())) === 'done';
    };
    const me = [agent.id];
    expect(await may({})).toBe(true);
    expect(await may({ node_ids: me })).toBe(true);
    expect(await may({ tags: 'role=web' })).toBe(true);
    expect(await may({ tags: 'attr.distro=debian !legacy' })).toBe(true);
    expect(await may({ tags: { role: 'web' } })).toBe(true);
    expect(await may({ node_ids: me, tags: 'role=web' })).toBe(true);
    expect(await may({ node_ids: me, tags: 'role=db' })).toBe(false);
    expect(await may({ node_ids: ['00'.repeat(16)], tags: 'role=web' })).toBe(false);
    expect(await may({ node_ids: [] })).toBe(false);
    expect(await may({ tags: '' })).toBe(false);
    expect(await may({ tags: ' ' })).toBe(false);
    expect(await may({ tags: {} })).toBe(false);
    expect(await may({ node_ids: [], tags: 'role=web' })).toBe(false);
  });

  test.each<[string, (all: Awaited<ReturnType<typeof open>>) => Promise<unknown>, string]>([
    ['removed', ({ context, actor }) => removeSecret(context, actor, 'x'), 'there is no secret "x"'],
    ['expired', async ({ domain }) => domain.clock.advance(hour), 'expired at'],
    [
      'forbidden',
      ({ context, actor }) => changeSecret(context, actor, 'x', { restriction: { tags: 'role=db' } }),
      'is not allowed for this agent',
    ],
    [
      'forbidden by a tag that changed',
      async ({ context, actor }) => putOneTag(context, actor, 'web-1', 'role', 'db'),
      'is not allowed for this agent',
    ],
  ])('fails a queued operation when its secret is %s before dispatch', async (_, meanwhile, error) => {
    const all = await open(fixture);
    const { domain, context, actor, agent, submit } = all;
    await putOneTag(context, actor, 'web-1', 'role', 'web');
    const restriction = { tags: 'role=web' };
    await createSecret(context, actor, { name: 'x', value: 'hunter2', expires_at: context.now() + hour, restriction });
    const id = await submit();
    await meanwhile(all);
    const ended = await sent(domain, agent.id, id);
    expect(ended).toMatchObject({ status: 'failed', error: expect.stringContaining(error) });
    expect(JSON.stringify(ended)).not.toContain('hunter2');
  });

  test('reads each secret once for a run, and sends it only to allowed agents', async () => {
    const { domain, context, actor, agent } = await open(fixture);
    const other = await newAgent(domain, actor, 'web-2');
    for (const name of ['web-1', 'web-2']) await putOneTag(context, actor, name, 'role', 'web');
    await createSecret(context, actor, { name: 'x', value: 'hunter2', restriction: { node_ids: [agent.id] } });
    await createAssignment(context, actor, { name: 'all', modules: ['s'], selector: 'role=web' });
    let reads = 0;
    const { db } = context;
    const all: typeof db.all = async (query, params) => {
      if (query.name === 'secrets/terms') reads++;
      return db.all(query, params);
    };
    Object.assign(context, { db: withOverrides(db, { all }) });
    const runId = await startRun(context, domain.conductor, actor, 'all', { kind: 'apply' });
    expect(reads).toBe(1);
    const { results } = await getRun(context, runId);
    expect(results.find(({ node_id }) => node_id === other.id)).toMatchObject({
      status: 'failed',
      error: 'the secret "x" is not allowed for this agent',
    });
    expect((await domain.links.nextOperation(agent.id))?.operation.resources[0]?.body).toMatchObject({
      content: 'hunter2',
    });
    expect(await domain.links.nextOperation(other.id)).toBeNull();
  });

  test('removes secrets from reports, even after a restart', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    const value = 'hunter2 "quoted"\nsecond line';
    await createSecret(context, actor, { name: 'x', value });
    for (const restarted of [false, true]) {
      const id = await submit();
      await domain.links.nextOperation(agent.id);
      const links = restarted
        ? createAgentLinks(context, domain.refusals, domain.pending, async () => {}, domain.liveOutput, domain.rules)
        : domain.links;
      // The rest of the encoded value follows in a later report.
      const half = `${Buffer.from(`x${value}`).toString('base64').slice(0, 24)}\n`;
      const stdout = { from: 0, to: half.length, text: half };
      await links.printed(agent.id, {
        ...{ type: 'output_progress', operation_id: id, resource: 'motd/k' },
        ...{ stdout, stderr: null },
      });
      const running = await getOutput(context, domain.liveOutput, 'web-1', id);
      expect(running.output['motd/k']?.stdout).toMatch(/^.?\(sensitive\)\n?$/);
      const said = `before ${value} after ${Buffer.from(value).toString('base64')} ${JSON.stringify(value)} ${encodeURIComponent(value)}`;
      const changes = [{ field: 'content', from: said, to: said }];
      const diff = '@@ -0,0 +1,2 @@\n+hunter2 "quoted"\n+second line\n';
      const result = resultOf({ status: 'failed', message: said, diff, changes });
      const reports = reportsOf(id, [result], { now: domain.now(), status: 'failed' }).map((report) =>
        report.type === 'finished' ? { ...report, error: said } : report,
      );
      const output = { resource: 'motd/k', stdout: said, stderr: said, exit_code: 1, truncated: false };
      reports.splice(2, 0, { type: 'output', operation_id: id, ...output });
      expect(await links.reported(agent.id, '01'.repeat(16), restarted ? 2 : 1, reports)).toBeNull();
      const operation = await getOperation(context, id);
      const shown = JSON.stringify([operation, await getOutput(context, domain.liveOutput, 'web-1', id)]);
      expect(operation.error).toContain('before (sensitive) after');
      for (const part of ['hunter2', 'second line', Buffer.from(value).toString('base64').slice(0, 20)])
        expect(shown).not.toContain(part);
    }
  });

  describe('secret values changed after dispatch', () => {
    const finished = (domain: Domain, operationId: string, said: string) =>
      reportsOf(operationId, [resultOf({ status: 'failed', message: said })], { now: domain.now(), status: 'failed' });
    const changes: Record<string, (all: Awaited<ReturnType<typeof open>>) => Promise<unknown>> = {
      'it is changed': ({ context, actor }) => changeSecret(context, actor, 'x', { value: 'the second' }),
      'it is changed twice': async ({ context, actor }) => {
        await changeSecret(context, actor, 'x', { value: 'the second' });
        await changeSecret(context, actor, 'x', { value: 'the third' });
      },
      'it is removed': ({ context, actor }) => removeSecret(context, actor, 'x'),
      'the key is rotated': ({ context, actor }) => rotateSecretsKey(context, actor),
      'it is changed and the key is rotated': async ({ context, actor }) => {
        await changeSecret(context, actor, 'x', { value: 'the second' });
        await rotateSecretsKey(context, actor);
      },
    };
    for (const [name, change] of Object.entries(changes))
      for (const restarted of [false, true])
        test(`removes a dispatched value from reports when ${name}${restarted ? ' and after a restart' : ''}`, async () => {
          const all = await open(fixture);
          const { domain, context, actor, agent, submit } = all;
          let stored: readonly Buffer[] = [Buffer.alloc(32, 7)];
          const file = {
            write: async (written: readonly Buffer[]) => {
              stored = written;
            },
          };
          Object.assign(context, { secretKeys: new SecretKeys(stored, file) });
          await createSecret(context, actor, { name: 'x', value: 'the first' });
          const id = await submit();
          expect(await sent(domain, agent.id, id)).toMatchObject({ content: 'the first' });
          await domain.clock.advance(1000);
          await change(all);
          // Dispatches the operation again without a report. The agent uses the first values.
          await domain.links.nextOperation(agent.id);
          await domain.clock.advance(60_000);
          await dropFormerSecrets(context);
          if (restarted) Object.assign(context, { secretKeys: new SecretKeys(stored, file) });
          const links = restarted
            ? createAgentLinks(
                context,
                domain.refusals,
                domain.pending,
                async () => {},
                domain.liveOutput,
                domain.rules,
              )
            : domain.links;
          // A new process dispatches the operation again.
          if (restarted) await links.nextOperation(agent.id);
          expect(
            await links.reported(agent.id, '01'.repeat(16), 1, finished(domain, id, 'it was the first')),
          ).toBeNull();
          const { resources } = await getOperation(context, id);
          expect(resources[0]?.message).toBe('it was (sensitive)');
          // No open operation can report the value anymore, so the value is deleted.
          await dropFormerSecrets(context);
          expect(await context.db.all(everyFormer, {})).toEqual([]);
        });

    test('stores previous values encrypted, and deletes them as soon as possible', async () => {
      const { domain, context, actor, agent, submit } = await open(fixture);
      await createSecret(context, actor, { name: 'x', value: 'the first' });
      await changeSecret(context, actor, 'x', { value: 'the second' });
      await domain.clock.advance(1000);
      const id = await submit();
      await sent(domain, agent.id, id);
      expect(JSON.stringify(await context.db.all(everyFormer, {}))).not.toContain('the first');
      // The value was replaced before the operation was dispatched.
      await dropFormerSecrets(context);
      expect(await context.db.all(everyFormer, {})).toEqual([]);
      await changeSecret(context, actor, 'x', { value: 'the third' });
      await domain.clock.advance(1000);
      await dropFormerSecrets(context);
      expect(await context.db.all(everyFormer, {})).toMatchObject([{ name: 'x', version: 2 }]);
    });
  });

  test('removes secrets from reports about removed resources', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    await createSecret(context, actor, { name: 'x', value: 'hunter2' });
    const applied = await submit();
    await domain.links.nextOperation(agent.id);
    const done = reportsOf(applied, [resultOf()], { now: domain.now() });
    expect(await domain.links.reported(agent.id, '01'.repeat(16), 1, done)).toBeNull();
    await domain.clock.advance(2 * 24 * hour);
    await prunePayloads(context);
    for (const restarted of [false, true]) {
      const id = await submit([]);
      await domain.links.nextOperation(agent.id);
      const links = restarted
        ? createAgentLinks(context, domain.refusals, domain.pending, async () => {}, domain.liveOutput, domain.rules)
        : domain.links;
      const said = [resultOf({ status: 'failed', action: 'remove', message: 'hunter2 was there' })];
      const reports = reportsOf(id, said, { now: domain.now(), status: 'failed' });
      expect(await links.reported(agent.id, '01'.repeat(16), restarted ? 3 : 2, reports)).toBeNull();
      expect((await getOperation(context, id)).resources[0]?.message).toBe('(sensitive) was there');
    }
  });

  test('does not decrypt a value that was copied to another row', async () => {
    const { context, actor, plain } = await open(fixture);
    await createSecret(context, actor, { name: 'a', value: 'of a' });
    await createSecret(context, actor, { name: 'b', value: 'of b' });
    const raw = (name: string) => context.db.get(rawSecret, { name });
    const put = async (name: string, sealed: string, version: number) => {
      const statements = [statement(forge, { name, sealed, version })];
      await context.db.write({ name: 'forge', statements });
    };
    const [a, b] = [await raw('a'), await raw('b')];
    await put('b', a?.sealed ?? '', 1);
    expect(await plain('b')).toBeUndefined();
    await put('b', b?.sealed ?? '', 1);
    expect(await plain('b')).toBe('of b');
    // Stores an old sealed value under the next version.
    await changeSecret(context, actor, 'b', { value: 'new b' });
    await put('b', b?.sealed ?? '', 2);
    expect(await plain('b')).toBeUndefined();
  });

  test('encrypts values with a new key, and retires the old key', async () => {
    const { context, actor, plain, version } = await open(fixture);
    const files: string[][] = [];
    const keys = new SecretKeys([Buffer.alloc(32, 7)], {
      write: async (written) => void files.push(written.map((key) => key.toString('hex'))),
    });
    Object.assign(context, { secretKeys: keys });
    const [former] = keys.ids;
    for (let i = 0; i < 450; i++) await createSecret(context, actor, { name: `s${i}`, value: `value ${i}` });
    const rule = { denyPrivate: false };
    const config = { url: 'https://hooks.example/x', secret: 'hunter2' };
    const channel = await createChannel(context, actor, rule, { name: 'ops', channel_type: 'webhook', config });
    const sealedChannel = await context.db.get(channelById, { channel_id: channel.id });
    expect(JSON.stringify(sealedChannel)).not.toContain('hooks.example');
    const [rotation] = await Promise.all([
      rotateSecretsKey(context, actor),
      ...[1, 2, 3].map((i) => changeSecret(context, actor, `s${i}`, { value: `new ${i}` })),
    ]);
    expect(rotation.reencrypted).toBeGreaterThanOrEqual(448);
    expect(rotation.reencrypted).toBeLessThanOrEqual(451);
    expect(rotation).toMatchObject({ key_id: keys.active?.id, retired: [former], unreadable: [] });
    expect(keys.ids).toEqual([rotation.key_id]);
    expect(files.map((written) => written.length)).toEqual([2, 1]);
    expect(await missingKey(context)).toBeNull();
    for (const i of [0, 1, 3, 200, 449]) expect(await plain(`s${i}`)).toBe(i > 0 && i < 4 ? `new ${i}` : `value ${i}`);
    const moved = await context.db.get(channelById, { channel_id: channel.id });
    expect(moved?.key_id).toBe(rotation.key_id);
    expect(moved && targetOf(context, moved)?.config).toEqual(config);
    // The values are equal, so plans that use them stay valid.
    expect([await version('s0'), await version('s1')]).toEqual([1, 2]);
    const { events } = await listAudit(context, { event_type: 'secret.key_rotated' });
    expect(events).toMatchObject([{ metadata: { key_id: rotation.key_id, retired: [former], unreadable: 0 } }]);
  });

  test('keeps values readable when a rotation is interrupted, and finishes it at the next rotation', async () => {
    const { context, actor, plain } = await open(fixture);
    let stored: readonly Buffer[] = [Buffer.alloc(32, 7)];
    const file = {
      write: async (written: readonly Buffer[]) => {
        stored = [...written];
      },
    };
    // Simulates a new process that reads the current key file.
    const restart = () => Object.assign(context, { secretKeys: new SecretKeys(stored, file) });
    const readable = async () => {
      for (const i of [0, 199, 200, 419]) expect(await plain(`s${i}`)).toBe(`v${i}`);
    };
    restart();
    // The rotation needs more than two batches.
    for (let i = 0; i < 420; i++) await createSecret(context, actor, { name: `s${i}`, value: `v${i}` });
    for (let cut = 0; cut < 4; cut++) {
      let writes = 0;
      const write: typeof context.db.write = async (unit) => {
        if (unit.name !== 'leases/take' && writes++ >= cut) throw new Error('killed');
        return context.db.write(unit);
      };
      const dying = { ...context, db: withOverrides(context.db, { write }) };
      expect(await code(rotateSecretsKey(dying, actor))).toMatchObject({ message: 'killed' });
      restart();
      expect(stored).toHaveLength(2);
      await readable();
      await rotateSecretsKey(context, actor);
      expect(stored).toHaveLength(1);
      await readable();
    }
  });

  test('refuses secrets whose key is missing until their values are set again', async () => {
    const { domain, context, actor, agent, submit } = await open(fixture);
    await createSecret(context, actor, { name: 'x', value: 'v' });
    const row = await context.db.get(rawSecret, { name: 'x' });
    Object.assign(context, { secretKeys: new SecretKeys([]) });
    expect(await missingKey(context)).toBe(row?.key_id);
    await expect(submit()).rejects.toThrow('the key that encrypted it is not in the key file');
    expect(await code(createSecret(context, actor, { name: 'y', value: 'v' }))).toBe('secrets_locked');
    expect(await code(changeSecret(context, actor, 'x', { value: 'v' }))).toBe('secrets_locked');
    expect(await code(rotateSecretsKey(context, actor))).toBe('secrets_locked');
    expect(await context.db.get(rawSecret, { name: 'x' })).toEqual(row);
    expect(await changeSecret(context, actor, 'x', { description: 'lost' })).toMatchObject({ description: 'lost' });

    // The first key is lost, and another key replaces it.
    Object.assign(context, { secretKeys: new SecretKeys([Buffer.alloc(32, 8)]) });
    expect(await rotateSecretsKey(context, actor)).toMatchObject({ reencrypted: 0, unreadable: ['x'] });
    const url = 'https://hooks.example/x';
    await createChannel(
      context,
      actor,
      { denyPrivate: false },
      { name: 'ops', channel_type: 'webhook', config: { url } },
    );
    Object.assign(context, { secretKeys: new SecretKeys([Buffer.alloc(32, 9), Buffer.alloc(32, 8)]) });
    expect(await rotateSecretsKey(context, actor)).toMatchObject({ reencrypted: 1, unreadable: ['x'] });
    Object.assign(context, { secretKeys: new SecretKeys([Buffer.alloc(32, 8)]) });
    expect(await rotateSecretsKey(context, actor)).toMatchObject({ reencrypted: 0, unreadable: ['x', 'channel ops'] });
    Object.assign(context, { secretKeys: new SecretKeys([Buffer.alloc(32, 8), Buffer.alloc(32, 9)]) });
    expect(await rotateSecretsKey(context, actor)).toMatchObject({ reencrypted: 1, unreadable: ['x'] });
    await changeSecret(context, actor, 'x', { value: 'again' });
    expect(await missingKey(context)).toBeNull();
    expect(await sent(domain, agent.id, await submit())).toMatchObject({ content: 'again' });
  });

  test('records an event once for each expiry, including a changed expiry', async () => {
    const { domain, context, actor } = await open(fixture);
    const day = 24 * hour;
    const upkeep = startUpkeep(context, domain.clock, { secretsExpiryNoticeDays: 14 });
    const announced = async () => {
      await upkeep.round();
      await upkeep.round();
      return (await listAudit(context, { event_type: 'secret.expiring' })).events.map(({ target }) => target.name);
    };
    await createSecret(context, actor, { name: 'soon', value: 'v', expires_at: context.now() + 13 * day });
    await createSecret(context, actor, { name: 'later', value: 'v', expires_at: context.now() + 30 * day });
    await createSecret(context, actor, { name: 'never', value: 'v' });
    expect(await announced()).toEqual(['soon']);
    await changeSecret(context, actor, 'soon', { description: 'the same time' });
    expect(await announced()).toEqual(['soon']);
    await changeSecret(context, actor, 'soon', { expires_at: context.now() + 10 * day });
    expect(await announced()).toEqual(['soon', 'soon']);
    await changeSecret(context, actor, 'later', { expires_at: null });
    await domain.clock.advance(20 * day);
    expect(await announced()).toEqual(['soon', 'soon']);
    await upkeep.stop();
  });
});

const rawSecret = defineQuery('secrets/raw', (db, p: { name: string }) =>
  db.selectFrom('secrets').select(['name', 'version', 'key_id', 'sealed']).where('name', '=', p.name),
);
const everyFormer = defineQuery('former secrets/every', (db) => db.selectFrom('former_secrets').selectAll());
const forge = defineQuery('secrets/forge', (db, p: { name: string; sealed: string; version: number }) =>
  db.updateTable('secrets').set({ sealed: p.sealed, version: p.version }).where('name', '=', p.name),
);
