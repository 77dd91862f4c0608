import type { Report } from '@muster/protocol/wire';
import { formerSecretsNamed } from '../../store/queries/former-secrets.ts';
import { payloadsReportedOn } from '../../store/queries/operations/payloads.ts';
import { sealedSecrets } from '../../store/queries/secrets.ts';
import { openSent, type SentSecret } from '../secrets/secret-access.ts';
import { createScrub, type Scrub, scrubReport } from '../secrets/secret-scrub.ts';
import type { Context } from '../shared/context.ts';
import type { OperationCache } from './operation-cache.ts';
import type { Payloads } from './payloads.ts';

/** Finds the secret values that an agent's reports may contain, and removes them. */

type Looking = Pick<Context, 'db' | 'secretKeys'>;

/**
 * Returns the names of the secrets that an operation's reports may contain: those in the payload, and those that the
 * last successful apply left on the machine.
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
 * Returns the sent secrets, and secrets that earlier operations may have left on the machine.
 * @param sent the secrets in an operation message
 * @param digests digests of the desired state and of the last applied state, if known
 */
export async function withEarlierSecrets(
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

/** Returns the function that removes an operation's secret values; null if the operation uses none. */
export type OperationScrub = (operationId: string) => Promise<Scrub | null>;

/** Removes secret values from reports. */
export type ReportScrub = (reports: readonly Report[]) => Promise<readonly Report[]>;

export function createOperationScrub(
  context: Looking,
  cache: Pick<OperationCache, 'secretsOf'>,
  payloads: Pick<Payloads, 'secretsOf'>,
): OperationScrub {
  /** Reads all stored values, because any of them may have been sent. Used after a restart and for drift checks. */
  async function lookUp(operationId: string): Promise<readonly SentSecret[]> {
    const names = await namesIn(context, payloads, operationId);
    if (names.length === 0) return [];
    // Reads previous values last, so that a value replaced between the reads appears in both rather than in neither.
    const present = await context.db.all(sealedSecrets, { names });
    return [...present, ...(await context.db.all(formerSecretsNamed, { names }))];
  }
  const open = (sent: readonly SentSecret[]) => sent.map((secret) => openSent(context, secret));

  async function valuesOf(operationId: string): Promise<string[]> {
    const sent = cache.secretsOf(operationId);
    let values = sent === undefined ? null : open(sent);
    // After a key rotation, only the values in the database can be decrypted.
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
