import type { Report } from '@muster/protocol/wire';
import { payloadReportedOn } from '../store/operations.ts';
import { sealedSecrets } from '../store/secrets.ts';
import type { Context } from './context.ts';
import type { InFlight } from './in-flight.ts';
import type { Payloads } from './payloads.ts';
import { openSent, type SentSecret } from './secret-access.ts';
import { createScrub, scrubReport } from './secret-scrub.ts';

/** Takes out of reports the values of the secrets that their operations were sent with. */
export type ReportScrub = (reports: readonly Report[]) => Promise<readonly Report[]>;

export function createReportScrub(
  context: Pick<Context, 'db' | 'secretKeys'>,
  inFlight: Pick<InFlight, 'secretsOf'>,
  payloads: Pick<Payloads, 'secretsOf'>,
): ReportScrub {
  /** After a restart, and of what a drift check looks at: as they are now. */
  async function lookUp(operationId: string): Promise<readonly SentSecret[]> {
    const row = await context.db.get(payloadReportedOn, { operation_id: operationId });
    const names = row?.payload_digest ? await payloads.secretsOf(row.payload_digest) : [];
    return names.length === 0 ? [] : context.db.all(sealedSecrets, { names: [...names] });
  }

  return async (reports) => {
    const scrubs = new Map<string, ((text: string) => string) | null>();
    for (const { type, operation_id } of reports) {
      if (type === 'accepted' || scrubs.has(operation_id)) continue;
      const sent = inFlight.secretsOf(operation_id) ?? (await lookUp(operation_id));
      const values = sent.flatMap((secret) => openSent(context, secret) ?? []);
      scrubs.set(operation_id, values.length === 0 ? null : createScrub(values));
    }
    return reports.map((report) => {
      const scrub = scrubs.get(report.operation_id);
      return scrub ? scrubReport(report, scrub) : report;
    });
  };
}
