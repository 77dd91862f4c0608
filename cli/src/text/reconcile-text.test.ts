import { listReconcile, type OffAgent, offAgentSchema } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { offLine, revisionsLine, syncWord } from './reconcile-text.ts';

const example: OffAgent = offAgentSchema.parse(listReconcile.example.answer[0]);

test('prints each reason with its count, and accepted drift, on one line', () => {
  expect(offLine(example)).toBe(
    'apply failed; 1 resource drifted; 1 not applied; outdated: 1 module has a newer revision; 1 resource accepted: the vendor asked for it until ticket 4711 is closed',
  );
  const [applied, audited] = example.drift as [OffAgent['drift'][0], OffAgent['drift'][0]];
  const { outdated: _, ...withoutOutdated } = example;
  const failed = {
    operation_id: 'o',
    status: 'failed',
    finished_at: 1,
    error: 'plan_stale: the machine has changed',
    summary: null,
    run_id: null,
  } as const;
  expect(
    offLine({
      ...withoutOutdated,
      reasons: ['apply_failed', 'drifted', 'drift_failed', 'pending_removals'],
      failed_operation: failed,
      failed_check: { drift_id: 'd', checked_at: 1, error: null },
      drift: [
        { ...applied, resources: 3 },
        { ...audited, accepted: null },
      ],
      pending_removals: 2,
    }),
  ).toBe(
    'apply failed: the plan is stale: the machine has changed; 3 resources drifted, 1 resource drifted from hardening; check failed; 2 to remove',
  );
});

test('distinguishes agents that are only outdated from agents that are out of sync', () => {
  const { outdated, reasons, drift } = example;
  expect(syncWord({ reasons, drift, outdated })).toBe('out of sync');
  expect(syncWord({ reasons: [], drift: [], outdated })).toBe('outdated');
  expect(syncWord({ reasons: [], drift: [] })).toBe(null);
  expect(syncWord(undefined)).toBe(null);
});

test('prints that an agent is outdated even if it also has accepted drift', () => {
  const { outdated, drift } = example;
  expect(syncWord({ reasons: [], drift, outdated })).toBe('outdated');
  expect(syncWord({ reasons: [], drift })).toBe(null);
});

test('names outdated modules with both revisions, and counts the remaining ones', () => {
  const examples = [{ module: 'motd', revision: 3, newest: 4 }];
  expect(revisionsLine({ modules: 1, examples })).toBe('motd: revision 3 applied, newest 4');
  expect(revisionsLine({ modules: 3, examples })).toBe('motd: revision 3 applied, newest 4; and 2 more');
});
