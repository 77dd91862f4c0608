import { createHmac } from 'node:crypto';
import type { Decision, Step } from './plan.ts';

/**
 * Digest of a plan: equal for equal steps with equal differences. An HMAC with a key of this machine, because the
 * digest leaves the machine and covers secret values.
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
    // Each step is one line. JSON contains no line breaks, so different lists of steps have different bytes.
    this.#hmac.update(`${JSON.stringify([kind, resource.key, verdict, ...outcome])}\n`);
  }

  hex(): string {
    return this.#hmac.digest('hex');
  }
}
