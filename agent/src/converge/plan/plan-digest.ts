import { createHmac } from 'node:crypto';
import type { Decision } from './decision.ts';
import type { Step } from './steps.ts';

/**
 * Digest of a plan. Digests are equal if the steps and their differences are equal. Uses an HMAC with a
 * machine-specific key, because the digest leaves the machine and covers secret values.
 */
export class PlanDigest {
  readonly #hmac: ReturnType<typeof createHmac>;

  constructor(key: Uint8Array) {
    this.#hmac = createHmac('sha256', key);
  }

  add({ kind, resource }: Step, decision: Decision): void {
    const { verdict } = decision;
    const outcome =
      verdict === 'none' || verdict === 'act'
        ? [decision.difference.action, decision.difference.changes, decision.difference.diff, decision.triggeredBy]
        : [];
    // JSON contains no line breaks, so each step is one line, and different steps never result in the same bytes.
    this.#hmac.update(`${JSON.stringify([kind, resource.key, verdict, ...outcome])}\n`);
  }

  hex(): string {
    return this.#hmac.digest('hex');
  }
}
