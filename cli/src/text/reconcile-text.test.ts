import { listReconcile, type OffAgent, offAgentSchema } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { offLine } from './reconcile-text.ts';

const example: OffAgent = offAgentSchema.parse(listReconcile.example.answer[0]);

test('prints each reason with its count, and accepted drift, on one line', () => {
  expect(offLine(example)).toBe(
    'apply failed; 1 resource drifted; 1 not applied; 1 resource accepted: the vendor asked for it until ticket 4711 is closed',
  );
  const [applied, audited] = example.drift as [OffAgent['drift'][0], OffAgent['drift'][0]];
  const failed = {
    operation_id: 'o',
    status: 'expired',
    finished_at: 1,
    error: 'it did not come',
    summary: null,
    run_id: null,
  } as const;
  expect(
    offLine({
      ...example,
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
    'apply expired: it did not come; 3 resources drifted, 1 resource drifted from hardening; check failed; 2 to remove',
  );
});
