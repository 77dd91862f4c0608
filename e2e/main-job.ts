import { appendFileSync, chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '@muster/protocol/client';
import {
  applyAgent,
  checkDrift,
  createAssignment,
  getAgent,
  getAssignment,
  getOperation,
  getOperationOutput,
  getState,
  listAudit,
  type Operation,
  planAgent,
  putTag,
  removeAssignment,
  setAgentStatus,
  uploadModule,
} from '@muster/protocol/http';
import { expect } from 'vitest';
import type { Orchestrator, Stage } from './harness.ts';
import { pagePath, runsOf, siteModule, treeOf } from './site.ts';

const problemOf = async (call: Promise<unknown>) =>
  await call.then(
    () => null,
    (error: unknown) => (error instanceof ApiError ? error.problem : Promise.reject(error)),
  );
const byId = (operation: Operation, id: string) => operation.resources.find((resource) => resource.id === id);

type Tree = ReturnType<typeof treeOf>;

/** The site to manage, and access to it through the API. */
interface Job {
  readonly call: Orchestrator['call'];
  readonly params: { readonly node_id: string };
  readonly root: string;
  upload(options?: Partial<Parameters<typeof siteModule>[0]>): Promise<unknown>;
}

const nothing = { body: { modules: [] } };

/** Tests the main scenario with one agent: plans, applies, checks for drift, changes, and removes a site. */
export async function mainJob(stage: Stage, orchestrator: Orchestrator): Promise<void> {
  const { call } = orchestrator;
  const token = await orchestrator.token(null);
  const { nodeId: node_id } = await stage.agent(orchestrator, 'web-1', { token });
  const root = join(stage.dir, 'site');
  const job: Job = {
    call,
    params: { node_id },
    root,
    upload: (options = {}) =>
      call(uploadModule, { body: { name: 'site', content: siteModule({ name: 'site', root, ...options }) } }),
  };

  await approve(job);
  // The directory already exists with a different mode, and contains one page with different content.
  mkdirSync(root, { mode: 0o700 });
  writeFileSync(pagePath(root, 0), 'mine\n', { mode: 0o600 });
  const before = treeOf(root);
  await assign(job);
  const plan = await planSite(job);
  expect(treeOf(root)).toEqual(before);
  const applied = await applySite(job, plan);
  const tree = treeOf(root);
  await expectNothingToDo(job);
  await repairDrift(job, tree);
  await changeGreeting(job);
  await shrinkSite(job, applied);
  await removeSite(job, before);
  await expectAudited(job);
}

/** Verifies that a pending agent receives no operations, and approves it. */
async function approve({ call, params }: Job): Promise<void> {
  expect(await call(getAgent, { params })).toMatchObject({ status: 'pending', connected: true, pin_source: 'flag' });
  expect(await problemOf(call(planAgent, { params, ...nothing }))).toMatchObject({ code: 'agent_not_approved' });
  const approved = await call(setAgentStatus, { params, body: { status: 'approved', name: 'web-1' } });
  expect(approved).toMatchObject({ status: 'approved', name: 'web-1', attributes: { platform: 'linux' } });
}

async function assign({ call, params, upload }: Job): Promise<void> {
  const { node_id } = params;
  await call(putTag, { params: { node_id, key: 'role' }, body: { value: 'web' } });
  await upload();
  await call(createAssignment, { body: { name: 'web', modules: ['site'], selector: 'role=web' } });
  expect((await call(getAssignment, { params: { name: 'web' } })).matches).toEqual([node_id]);
}

/** Plans the site by the agent's name. Expects changes to all resources. */
async function planSite({ call }: Job): Promise<Operation> {
  const plan = await call(planAgent, { params: { node_id: 'web-1' }, ...nothing });
  expect(plan).toMatchObject({ kind: 'plan', status: 'succeeded', modules: ['site'] });
  expect(plan.summary).toEqual({ total: 26, unchanged: 0, changed: 26, removed: 0, failed: 0, skipped: 0 });
  expect(byId(plan, 'page-0')).toMatchObject({ action: 'update', status: 'would_change' });
  expect(byId(plan, 'page-0')?.diff).toContain('-mine\n+hello\n');
  expect(byId(plan, 'page-5')?.diff).toContain('+page 5\n');
  expect(byId(plan, 'dir-0')?.changes).toEqual([{ field: 'mode', from: '0700', to: '0755' }]);
  expect(byId(plan, 'index')).toMatchObject({ action: 'run', status: 'would_change' });
  return plan;
}

/** Applies the site. Expects the planned changes in the planned order. */
async function applySite({ call, params, root }: Job, plan: Operation): Promise<Operation> {
  const applied = await call(applyAgent, { params, ...nothing });
  expect(applied).toMatchObject({ kind: 'apply', status: 'succeeded', summary: { total: 26, changed: 26 } });
  expect(applied.resources.map(({ id, action }) => [id, action])).toEqual(
    plan.resources.map(({ id, action }) => [id, action]),
  );
  const tree = treeOf(root);
  expect(tree['page-0.html']).toBe('0644 hello\n');
  expect(tree['assets/css/page-5.html']).toBe('0644 page 5\nof site\n');
  expect(tree['.']).toBe('0755 directory');
  expect(Object.keys(tree)).toHaveLength(5 + 20 + 2);
  expect(runsOf(root)).toBe(1);
  const { output } = await call(getOperationOutput, { params: { ...params, operation_id: applied.operation_id } });
  expect(Object.values(output)).toMatchObject([{ stdout: 'built the index\n', exit_code: 0, truncated: false }]);
  expect(await call(getOperation, { params: { operation_id: applied.operation_id } })).toEqual(applied);
  return applied;
}

/** Expects that neither a plan nor an apply changes anything. */
async function expectNothingToDo({ call, params, root }: Job): Promise<void> {
  expect((await call(planAgent, { params, ...nothing })).summary).toMatchObject({ total: 26, unchanged: 26 });
  expect((await call(applyAgent, { params, ...nothing })).summary).toMatchObject({ total: 26, unchanged: 26 });
  expect(runsOf(root)).toBe(1);
  expect((await call(checkDrift, { params })).status).toBe('in_sync');
  expect((await call(getState, { params })).applied).toHaveLength(26);
}

/**
 * Expects a drift check to report exactly the manual changes, and an apply to revert them as corrective changes.
 */
async function repairDrift({ call, params, root }: Job, tree: Tree): Promise<void> {
  appendFileSync(pagePath(root, 2), 'kilroy was here\n');
  chmodSync(pagePath(root, 3), 0o600);
  chmodSync(join(root, 'pages'), 0o700);
  rmSync(pagePath(root, 4));
  const drift = await call(checkDrift, { params });
  expect(drift).toMatchObject({ status: 'drifted', trigger: 'operator', summary: { total: 26, changed: 4 } });
  const moved = Object.fromEntries(
    drift.resources.map(({ id, action, changes }) => [id, { action, fields: changes.map(({ field }) => field) }]),
  );
  expect(moved).toEqual({
    'dir-4': { action: 'update', fields: ['mode'] },
    'page-2': { action: 'update', fields: ['content'] },
    'page-3': { action: 'update', fields: ['mode'] },
    'page-4': { action: 'create', fields: expect.any(Array) },
  });
  expect(drift.resources.find(({ id }) => id === 'page-2')?.diff).toContain('-kilroy was here');

  const repaired = await call(applyAgent, { params, ...nothing });
  expect(repaired.summary).toMatchObject({ unchanged: 22, changed: 4 });
  expect(repaired.resources.filter(({ corrective }) => corrective).map(({ id }) => id)).toEqual([
    'dir-4',
    'page-2',
    'page-3',
    'page-4',
  ]);
  expect(treeOf(root)).toEqual(tree);
  expect((await call(checkDrift, { params })).status).toBe('in_sync');
}

/** Changes a page. Expects an update that is not corrective, and a rerun of the script. */
async function changeGreeting({ call, params, root, upload }: Job): Promise<void> {
  await upload({ greeting: 'good evening' });
  const changed = await call(applyAgent, { params, ...nothing });
  expect(changed.summary).toMatchObject({ unchanged: 24, changed: 2 });
  expect(byId(changed, 'page-0')).toMatchObject({ action: 'update', corrective: false });
  expect(byId(changed, 'index')).toMatchObject({ action: 'run', status: 'changed', triggered_by: ['page-0'] });
  expect(treeOf(root).index).toMatch(/good evening\n$/);
  expect(runsOf(root)).toBe(2);
}

/** Removes resources from the module. Expects that they are removed last, in reverse order. */
async function shrinkSite({ call, params, root, upload }: Job, applied: Operation): Promise<void> {
  await upload({ greeting: 'good evening', pages: 3, directories: 4, script: 'none' });
  const shrunk = await call(applyAgent, { params, ...nothing });
  expect(shrunk).toMatchObject({ status: 'succeeded', summary: { total: 26, unchanged: 7, removed: 19, changed: 0 } });
  const removals = shrunk.resources.slice(7).map(({ id }) => id);
  const declared = applied.resources.map(({ id }) => id);
  expect(removals).toEqual(declared.filter((id) => removals.includes(id)).reverse());
  expect(Object.keys(treeOf(root))).toEqual([
    '.',
    'assets',
    'assets/css',
    'assets/css/page-1.html',
    'assets/img',
    'assets/img/page-2.html',
    'log',
    'page-0.html',
  ]);
  expect(runsOf(root)).toBe(3);
}

/** Removes the assignment. Expects an apply that restores the original state. */
async function removeSite({ call, params, root }: Job, before: Tree): Promise<void> {
  await call(removeAssignment, { params: { name: 'web' } });
  expect((await call(applyAgent, { params, ...nothing })).summary).toMatchObject({ total: 7, removed: 7 });
  rmSync(join(root, 'log'));
  expect(treeOf(root)).toEqual(before);
  expect(await call(getState, { params })).toMatchObject({ applied: [], pending_removals: [] });
}

async function expectAudited({ call }: Job): Promise<void> {
  const { events } = await call(listAudit, { query: { limit: '500' } });
  const types = new Set(events.map(({ event_type }) => event_type));
  for (const type of ['agent.pending', 'agent.approved', 'agent.tagged', 'module.uploaded', 'auth.signed_in'])
    expect(types).toContain(type);
}
