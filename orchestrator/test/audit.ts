import { audited } from '../src/domain/audit/audit.ts';
import { createSequencer } from '../src/domain/audit/event-sequencer.ts';
import type { EventConsumer } from '../src/domain/audit/placed-event.ts';
import type { Statement } from '../src/store/transaction.ts';
import type { Domain } from './domain.ts';

/** Adds every committed event to the chain, as the scheduled task does. */
export async function placeAll({ context }: Domain, consumers: readonly EventConsumer[] = []): Promise<void> {
  const sequencer = createSequencer(context, { consumers });
  while (await sequencer.place([]));
}

/** Records many events per transaction. */
export async function happen({ context }: Domain, count: number, type = 'test.happened', load = ''): Promise<void> {
  // `test.happened` is not a declared event type.
  const record = audited as (context: Domain['context'], happening: object) => Statement;
  const statements = Array.from({ length: count }, (_, at) =>
    record(context, {
      type,
      severity: 'info',
      actor: { type: 'system', id: '', name: '' },
      summary: `it happened ${at}`,
      metadata: { at, load, text: 'é"\\\u0000\ud800', nested: { b: 1, a: [1.5, null] } },
    }),
  );
  while (statements.length > 0) await context.db.write({ name: 'test/happen', statements: statements.splice(0, 200) });
}
