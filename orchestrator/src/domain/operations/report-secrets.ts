import type { Report } from '@muster/protocol/wire';
import { formerSecretsNamed } from '../../store/queries/former-secrets.ts';
import { payloadsReportedOn } from '../../store/queries/operations.ts';
import { sealedSecrets } from '../../store/queries/secrets.ts';
import { openSent, type SentSecret } from '../secrets/secret-access.ts';
import { createScrub, type Scrub, scrubReport } from '../secrets/secret-scrub.ts';
import type { Context } from '../shared/context.ts';
import type { InFlight } from './in-flight.ts';
import type { Payloads } from './payloads.ts';

/** The values to look for in what an agent says of an operation, and taking them out. */

type Looking = Pick<Context, 'db' | 'secretKeys'>;

/**
 * Names of the secrets that an agent may say in its reports of an operation: those that are in it, and those that are
 * on the machine from the last apply that succeeded, also where the operation has them no more.
 */
async function namesIn({ db }: Looking, payloads: Pick<Payloads, 'secretsOf'>, operationId: string): Promise<string[]> {
  const row = await db.get(payloadsReportedOn, { operation_id: operationId });
  return namesOf(payloads, [row?.own, row?.snapshot, row?.applied]);
}

async function namesOf(
  payloads: Pick<Payloads, 'secretsOf'>,
  among: readonly (string | null | undefined)[],
): Promise<string[]> {
  const digests = new Set(among.filter((digest) => digest != null));
  const names = await Promise.all([...digests].map((digest) => payloads.secretsOf(digest)));
  return [...new Set(names.flat())];
}

/**
 * @param sent what an operation is being sent with
 * @param digests of what it is to apply, and what was applied before, where both are known
 * @returns that, and what its machine may have besides
 */
export async function withThoseThere(
  context: Looking,
  payloads: Pick<Payloads, 'secretsOf'>,
  operationId: string,
  sent: readonly SentSecret[],
  digests?: readonly (string | null)[],
): Promise<readonly SentSecret[]> {
  const known = new Set(sent.map(({ name }) => name));
  const all = digests ? namesOf(payloads, digests) : namesIn(context, payloads, operationId);
  const names = (await all).filter((name) => !known.has(name));
  return names.length === 0 ? sent : [...sent, ...(await context.db.all(sealedSecrets, { names }))];
}

/** What takes the values of the secrets out of a text that an operation was sent with; null when it has none. */
export type OperationScrub = (operationId: string) => Promise<Scrub | null>;

/** Takes out of reports the values of the secrets that their operations were sent with. */
export type ReportScrub = (reports: readonly Report[]) => Promise<readonly Report[]>;

export function createOperationScrub(
  context: Looking,
  inFlight: Pick<InFlight, 'secretsOf'>,
  payloads: Pick<Payloads, 'secretsOf'>,
): OperationScrub {
  /** After a restart, and of what a drift check looks at: every value that is kept, since any may have been sent. */
  async function lookUp(operationId: string): Promise<readonly SentSecret[]> {
    const names = await namesIn(context, payloads, operationId);
    if (names.length === 0) return [];
    // The former ones last: what is replaced between the two is in both rather than in none.
    const present = await context.db.all(sealedSecrets, { names });
    return [...present, ...(await context.db.all(formerSecretsNamed, { names }))];
  }
  const open = (sent: readonly SentSecret[]) => sent.map((secret) => openSent(context, secret));

  async function valuesOf(operationId: string): Promise<string[]> {
    const sent = inFlight.secretsOf(operationId);
    let values = sent === undefined ? null : open(sent);
    // Under a key that has been changed since, they are in the database under the new one.
    if (values === null || values.includes(null)) values = open(await lookUp(operationId));
    return values.filter((value) => value !== null);
  }

  return async (operationId) => {
    const values = await valuesOf(operationId);
    return values.length === 0 ? null : createScrub(values);
  };
}

export function createReportScrub(scrubOf: OperationScrub): ReportScrub {
  return async (reports) => {
    const scrubs = new Map<string, ((text: string) => string) | null>();
    for (const { type, operation_id } of reports) {
      if (type === 'accepted' || scrubs.has(operation_id)) continue;
      scrubs.set(operation_id, await scrubOf(operation_id));
    }
    return reports.map((report) => {
      const scrub = scrubs.get(report.operation_id);
      return scrub ? scrubReport(report, scrub) : report;
    });
  };
}
