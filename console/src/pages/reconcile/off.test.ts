import type { OffAgent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { acceptable, byFinding, canRepair, groupOff } from './off.ts';

const summary = { total: 3, unchanged: 2, changed: 1, removed: 0, failed: 0, skipped: 0 };
const drift = (over: Partial<OffAgent['drift'][number]> = {}): OffAgent['drift'][number] => ({
  ...{ drift_id: 'd', assignment: null, since: 1, checked_at: 2, summary, resources: 1, accepted: null, examples: [] },
  ...over,
});
const agent = (name: string, over: Partial<OffAgent> = {}): OffAgent => ({
  ...{ node_id: `id-${name}`, name, connected: true, last_seen_at: 1, reasons: ['drifted'], drift: [drift()] },
  ...{
    failed_check: null,
    failed_operation: null,
    unapplied: 0,
    pending_removals: 0,
    unfinished: [],
    modules: ['base'],
  },
  ...(over as object),
});

test('lists a few agents one by one, and groups many agents with the same reasons', () => {
  const many = Array.from({ length: 40 }, (_, at) => agent(`web-${at}`));
  expect(groupOff(many.slice(0, 3)).map(({ agents }) => agents.length)).toEqual([1, 1, 1]);
  const odd = agent('odd', { drift: [drift({ resources: 2 })] });
  expect(groupOff([...many, odd]).map(({ agents }) => agents.length)).toEqual([40, 1]);
});

test('ignores the agent name in an error when grouping', () => {
  const failed = (name: string) =>
    agent(name, {
      reasons: ['apply_failed'],
      failed_operation: {
        ...{ operation_id: name, status: 'failed', finished_at: 1, summary: null, run_id: null },
        error: `cannot resolve ${name}.example.net`,
      },
    });
  expect(groupOff(Array.from({ length: 30 }, (_, at) => failed(`web-${at}`)))).toHaveLength(1);
});

test('offers neither to accept nor to repair accepted drift', () => {
  const accepted = { by: 'x', at: 1, reason: 'known' };
  const known = agent('a', { reasons: [], drift: [drift({ accepted })] });
  expect([acceptable(known), canRepair(known)]).toEqual([[], false]);
});

test('offers to update an outdated agent', () => {
  const outdated = { modules: 1, examples: [{ module: 'base', revision: 1, newest: 2 }] };
  const old = agent('a', { reasons: [], drift: [], outdated });
  expect([acceptable(old), canRepair(old)]).toEqual([[], true]);
});

test('offers no repair for drift from an audit assignment', () => {
  const audited = agent('a', { drift: [drift({ assignment: 'hardening', drift_id: 'audit' })] });
  expect([acceptable(audited), canRepair(audited)]).toEqual([['audit'], false]);
});

test('sorts agents by their worst finding, then by name in natural order', () => {
  const outdated = (name: string) => agent(name, { reasons: [], drift: [], outdated: { modules: 1, examples: [] } });
  const failed = agent('web-11', { reasons: ['apply_failed', 'drifted'] });
  const accepted = agent('a', { reasons: [] });
  const drifted = [agent('web-3'), agent('edge-2')];
  const sorted = byFinding([accepted, outdated('web-10'), ...drifted, outdated('web-2'), failed]);
  expect(sorted.map(({ name }) => name)).toEqual(['web-11', 'edge-2', 'web-3', 'web-2', 'web-10', 'a']);
});
