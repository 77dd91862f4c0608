import { createHmac } from 'node:crypto';
import type { Decision, Step } from './plan.ts';

/**
 * What a plan comes to, as one text: the same for the same steps with the same differences, whenever it is made. It is
 * made under a key of this machine's own, since some of the values are secrets and the text leaves the machine.
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
    // One line each, and JSON has no line breaks of its own: no two lists of steps are the same bytes.
    this.#hmac.update(`${JSON.stringify([kind, resource.key, verdict, ...outcome])}\n`);
  }

  hex(): string {
    return this.#hmac.digest('hex');
  }
}
