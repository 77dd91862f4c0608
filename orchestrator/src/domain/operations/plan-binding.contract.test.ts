import { endedStale, MusterError } from '@muster/protocol';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../../test/databases/databases.ts';
import { newAdmin, newAgent, openDomain, reportsOf, resultOf } from '../../../test/domain.ts';
import { awaitRun, getOperation, getRun } from '../../../test/reading.ts';
import { withOverrides } from '../../store/database.ts';
import { setStatus } from '../agents/agents.ts';
import { putOneTag } from '../agents/tags.ts';
import { listAudit } from '../audit/audit.ts';
import { createAssignment, removeAssignment } from '../modules/assignments.ts';
import { getModule, removeModule, uploadModule } from '../modules/modules.ts';
import { cancelOperation } from '../operation-end/cancellation.ts';
import type { RunRequest } from '../runs/run-basis.ts';
import { startRun } from '../runs/runs.ts';
import { changeSecret, createSecret } from '../secrets/secrets.ts';
import { listOperations, type OperationRequest, submitOperation } from './operations.ts';

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof MusterError ? error.code : error),
  );

const fileModule = (name: string, content = 'hi\n') =>
  `name: ${name}\nsupports: [{ platform: linux }]\nresources:\n  - { id: f, resource: { file-unix: { path: /etc/${name}, content: ${JSON.stringify(content)} } } }\n`;

const planDigest = 'ab'.repeat(32);

async function open(fixture: Parameters<Parameters<typeof describeAnyDatabase>[1]>[0]) {
  const domain = await openDomain(fixture);
  const { context } = domain;
  const { actor } = await newAdmin(domain);
  const agent = await newAgent(domain, actor, 'web-1');
  await putOneTag(context, actor, 'web-1', 'role', 'web');
  for (const name of ['m', 'other']) await uploadModule(context, actor, name, fileModule(name));
  await createAssignment(context, actor, { name: 'base', modules: ['other'], selector: 'role=web' });
  let seq = 0;
  const submit = (kind: 'apply' | 'plan', more: Partial<OperationRequest> = {}) =>
    submitOperation(context, actor, 'web-1', { kind, modules: [], queue: false, ...more });
  const execute = async (digest: string | null = planDigest, status: 'succeeded' | 'failed' = 'succeeded') => {
    const next = await domain.links.nextOperation(agent.id);
    if (!next) return null;
    const { operation } = next;
    const reports = reportsOf(operation.operation_id, [resultOf()], { now: domain.now(), status }).map((report) =>
      report.type === 'finished' && operation.kind === 'plan' && digest !== null
        ? { ...report, plan_digest: digest }
        : report,
    );
    await domain.links.reported(agent.id, '01'.repeat(16), ++seq, reports);
    return operation;
  };
  const plan = async (modules: string[] = ['m'], digest: string | null = planDigest) => {
    const id = await submit('plan', { modules });
    await execute(digest);
    return id;
  };
  const run = async (request: RunRequest) => {
    const id = await startRun(context, domain.conductor, actor, 'base', request);
    const operation = await execute();
    await awaitRun(context, domain.waiting, id);
    return { id, operation };
  };
  return { domain, context, actor, agent, submit, execute, plan, run };
}

describeAnyDatabase('plan binding', (fixture) => {
  test('binds an apply to the planned desired state, and sends the agent the plan digest', async () => {
    const { context, submit, execute, plan } = await open(fixture);
    const plan_id = await plan();
    const id = await submit('apply', { plan_id });
    expect(await execute()).toMatchObject({ operation_id: id, modules: ['other', 'm'], plan_digest: planDigest });
    expect(await getOperation(context, id)).toMatchObject({ plan_id, status: 'succeeded' });
    await submit('apply', { plan_id, modules: ['m'] });
    expect(await execute()).not.toBeNull();
    expect(await code(submit('apply', { plan_id, modules: ['other'] }))).toBe('invalid_input');
    // An unbound apply has no plan digest.
    await submit('apply', { modules: ['m'] });
    expect(await execute()).not.toHaveProperty('plan_digest');
  });

  test('refuses a plan when the desired state has changed', async () => {
    const { domain, context, actor, submit, plan } = await open(fixture);
    const attempt = async (change: () => Promise<unknown>) => {
      const plan_id = await plan();
      expect(await code(submit('apply', { plan_id }))).toBe('done');
      const { operations } = await listOperations(context, { status: 'queued' });
      for (const { operation_id } of operations) await cancelOperation(context, actor, operation_id);
      await change();
      return code(submit('apply', { plan_id }));
    };
    expect(await attempt(() => uploadModule(context, actor, 'm', fileModule('m', 'changed\n')))).toBe('plan_stale');
    expect(await attempt(() => removeAssignment(context, actor, 'base'))).toBe('plan_stale');
    expect(await attempt(() => removeModule(context, actor, 'm'))).toBe('plan_stale');
    expect(await domain.links.agentsWithWork()).toEqual([]);
  });

  test('plans a module that is not stored, and applies the plan once that exact text is stored', async () => {
    const { domain, context, actor, submit, execute } = await open(fixture);
    const content = fileModule('fresh').replace('resources:', 'requires: [{ module: m }]\nresources:');
    const plan_id = await submit('plan', { draft: { content } });
    expect(await execute()).toMatchObject({ modules: ['other', 'm', 'fresh'] });
    const { events } = await listAudit(context, { event_type: 'state.requested' });
    expect(events[0]?.metadata).toMatchObject({ draft: { name: 'fresh', digest: expect.stringMatching(/^sha256:/) } });
    expect(await code(submit('apply', { plan_id }))).toBe('plan_stale');
    await uploadModule(context, actor, 'fresh', content);
    expect(await code(submit('apply', { plan_id }))).toBe('done');
    await execute();
    await uploadModule(context, actor, 'fresh', content.replace('hi', 'hello'));
    expect(await code(submit('apply', { plan_id }))).toBe('plan_stale');
    expect(await domain.links.agentsWithWork()).toEqual([]);
  });

  test('plans changed text in place of the stored module, and refuses invalid text', async () => {
    const { context, submit, execute } = await open(fixture);
    await submit('plan', { draft: { content: fileModule('other', 'changed\n') } });
    expect(await execute()).toMatchObject({ modules: ['other'], resources: [{ body: { content: 'changed\n' } }] });
    expect((await getModule(context, 'other')).revision).toBe(1);
    for (const content of [
      fileModule('x').replace('supports', 'suports'),
      fileModule('x').replace('resources:', 'requires: [{ module: missing }]\nresources:'),
    ])
      expect(await code(submit('plan', { draft: { content } }))).toBe('module_invalid');
  });

  test('accepts only a successful plan for the same agent', async () => {
    const { domain, actor, submit, execute, plan } = await open(fixture);
    expect(await code(submit('apply', { plan_id: 'x' }))).toBe('operation_not_found');
    const apply = await submit('apply', { modules: ['m'] });
    await execute();
    expect(await code(submit('apply', { plan_id: apply }))).toBe('operation_not_found');
    const unended = await submit('plan', { modules: ['m'] });
    expect(await code(submit('apply', { plan_id: unended }))).toBe('plan_stale');
    await execute(planDigest, 'failed');
    expect(await code(submit('apply', { plan_id: unended }))).toBe('plan_stale');
    // This agent is too old to report a plan digest.
    expect(await code(submit('apply', { plan_id: await plan(['m'], null) }))).toBe('plan_stale');
    await newAgent(domain, actor, 'web-2');
    const plan_id = await plan();
    const foreign = { kind: 'apply', modules: [], plan_id, queue: false } as const;
    expect(await code(submitOperation(domain.context, actor, 'web-2', foreign))).toBe('operation_not_found');
  });

  test('compares the plan again at dispatch, and ends a stale apply without dispatching it', async () => {
    const { domain, context, actor, agent, submit, plan } = await open(fixture);
    const plan_id = await plan();
    const id = await submit('apply', { plan_id });
    await uploadModule(context, actor, 'm', fileModule('m', 'changed\n'));
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    const operation = await getOperation(context, id);
    expect(operation).toMatchObject({ status: 'failed', error: expect.stringMatching(/^plan_stale: /) });
    expect(endedStale(operation)).toBe(true);
  });

  test('refuses a plan when the result of a lookup has changed, and names the lookup', async () => {
    const { domain, context, actor, agent, submit, plan, execute } = await open(fixture);
    const lookups = 'lookups: { nodes: { selector: "role=web", of: agent.name } }\n';
    const content = '${{ lookup.nodes | join(",") }}';
    await uploadModule(context, actor, 'm', fileModule('m', content).replace('resources:', `${lookups}resources:`));
    await newAgent(domain, actor, 'web-2');
    const failure = (promise: Promise<unknown>) => promise.then(String, String);
    const plan_id = await plan();
    await submit('apply', { plan_id });
    expect(await execute()).toMatchObject({ resources: [{}, { body: { content: 'web-1' } }] });
    await putOneTag(context, actor, 'web-2', 'role', 'web');
    expect(await failure(submit('apply', { plan_id }))).toContain('the lookup m:nodes has changed since the plan');
    const again = await plan();
    const id = await submit('apply', { plan_id: again });
    // Another agent changes while the apply is queued. Pending and rejected agents do not count.
    await newAgent(domain, actor, 'web-3');
    await putOneTag(context, actor, 'web-3', 'role', 'web');
    expect(await domain.links.nextOperation(agent.id)).toBeNull();
    expect(await getOperation(context, id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^plan_stale: the lookup m:nodes has changed/),
    });
    await setStatus(context, actor, 'web-3', { status: 'rejected' });
    // Dispatch shares lookups for a second.
    domain.clock.advance(1000);
    await submit('apply', { plan_id: again });
    expect(await execute()).toMatchObject({ resources: [{}, { body: { content: 'web-1,web-2' } }] });
  });

  test('reads several values of each agent, and refuses a plan when one of them has changed', async () => {
    const { domain, context, actor, submit, plan, execute } = await open(fixture);
    const lookups = 'lookups: { nodes: { selector: "role=web", of: { rack: tag.rack, name: agent.name } } }\n';
    const content = '${{ for node in lookup.nodes }}${{ node.name }}=${{ node.rack }} ${{ end }}';
    await uploadModule(context, actor, 'm', fileModule('m', content).replace('resources:', `${lookups}resources:`));
    await newAgent(domain, actor, 'web-2');
    await putOneTag(context, actor, 'web-2', 'role', 'web');
    await putOneTag(context, actor, 'web-2', 'rack', '4');
    const plan_id = await plan();
    await submit('apply', { plan_id });
    // This agent has no rack, so the lookup omits the agent.
    expect(await execute()).toMatchObject({ resources: [{}, { body: { content: 'web-2=4 ' } }] });
    await putOneTag(context, actor, 'web-2', 'rack', '5');
    const failure = await submit('apply', { plan_id }).then(String, String);
    expect(failure).toContain('the lookup m:nodes has changed since the plan');
  });

  test('accepts a plan when a lookup that this agent does not use has changed', async () => {
    const { domain, context, actor, submit, plan, execute } = await open(fixture);
    const lookups = 'lookups: { nodes: { when: { tag.role: db }, selector: "role=web", of: agent.name } }\n';
    const content = '${{ lookup.nodes | join(",") }}';
    await uploadModule(context, actor, 'm', fileModule('m', content).replace('resources:', `${lookups}resources:`));
    await newAgent(domain, actor, 'web-2');
    const plan_id = await plan();
    await putOneTag(context, actor, 'web-2', 'role', 'web');
    await submit('apply', { plan_id });
    expect(await execute()).toMatchObject({ resources: [{}, { body: { content: '' } }] });
  });

  test('never sends a secret value that changed after the plan', async () => {
    const { domain, context, actor, agent, submit, plan } = await open(fixture);
    const { db } = context;
    await uploadModule(context, actor, 'm', fileModule('m', '${{ secrets.x }}'));
    await createSecret(context, actor, { name: 'x', value: 'as planned' });
    // Commits each change after the comparison but before the values are read.
    for (const change of [
      () => changeSecret(context, actor, 'x', { value: 'another' }),
      () => changeSecret(context, actor, 'x', { restriction: { node_ids: [] } }),
    ]) {
      await changeSecret(context, actor, 'x', { restriction: {} });
      const id = await submit('apply', { plan_id: await plan() });
      let changed = false;
      const all: typeof db.all = async (query, params) => {
        if (query.name === 'secrets/sealed' && !changed) {
          changed = true;
          await change();
        }
        return db.all(query, params);
      };
      Object.assign(context, { db: withOverrides(db, { all }) });
      expect(await domain.links.nextOperation(agent.id)).toBeNull();
      Object.assign(context, { db });
      expect(changed).toBe(true);
      expect(await getOperation(context, id)).toMatchObject({ status: 'failed' });
    }
    const ended = await listOperations(context, { kind: 'apply', status: 'failed' });
    expect(ended.operations.map(({ error }) => error)).toEqual([
      'the secret "x" is not allowed for this agent',
      'plan_stale: the secret x has changed since the plan',
    ]);
  });

  test('binds a run to a plan run', async () => {
    const { context, actor, run } = await open(fixture);
    const planned = await run({ kind: 'plan' });
    const applied = await run({ kind: 'apply', plan_run_id: planned.id });
    expect(applied.operation).toMatchObject({ plan_digest: planDigest });
    expect((await getRun(context, applied.id)).status).toBe('succeeded');
    await uploadModule(context, actor, 'other', fileModule('other', 'changed\n'));
    const stale = await run({ kind: 'apply', plan_run_id: planned.id });
    expect(stale.operation).toBeNull();
    expect(await getRun(context, stale.id)).toMatchObject({
      status: 'failed',
      results: [
        {
          status: 'failed',
          operation_id: null,
          error: expect.stringMatching(/^plan_stale: .* has changed since the plan/),
        },
      ],
    });
    await uploadModule(context, actor, 'other', fileModule('other', '${{ secrets.x }}'));
    await createSecret(context, actor, { name: 'x', value: 'as planned' });
    const withSecret = await run({ kind: 'plan' });
    await changeSecret(context, actor, 'x', { restriction: { node_ids: [] } });
    const unresolved = await run({ kind: 'apply', plan_run_id: withSecret.id });
    expect((await getRun(context, unresolved.id)).results).toMatchObject([
      { operation_id: null, error: expect.stringMatching(/^plan_stale: the secret "x" is not allowed/) },
    ]);
    expect(await code(run({ kind: 'apply', plan_run_id: 'x' }))).toBe('run_not_found');
    expect(await code(run({ kind: 'apply', plan_run_id: applied.id }))).toBe('invalid_input');
    expect(await code(run({ kind: 'plan', plan_run_id: planned.id }))).toBe('invalid_input');
  });
});
