import type { Target } from './pin.ts';

/** Maximum number of targets, because anyone on the network can announce an orchestrator. */
const maxCandidates = 8;

const isSame = (a: Target, b: Target): boolean =>
  a.host === b.host && a.port === b.port && a.orchestrator_key === b.orchestrator_key;

/** Announced orchestrators that the agent has not reached yet. New ones are tried first, then all of them in turn. */
export class Candidates {
  private queue: Target[] = [];
  private newCount = 0;
  private isHomeNext = true;

  /** Whether an announced orchestrator has not been tried yet. */
  get hasNew(): boolean {
    return this.newCount > 0;
  }

  /** Adds a target. @returns false if the target is already waiting for its first attempt */
  add(target: Target): boolean {
    const at = this.queue.findIndex((each) => isSame(each, target));
    if (at >= 0 && at < this.newCount) return false;
    // A repeated announcement moves the target to the front.
    if (at >= 0) this.queue.splice(at, 1);
    this.queue.splice(this.newCount++, 0, target);
    if (this.queue.length > maxCandidates) {
      this.queue.pop();
      this.newCount = Math.min(this.newCount, this.queue.length);
    }
    return true;
  }

  /**
   * Returns the target to try now.
   * @param home the agent's known orchestrator, which alternates with the announced ones
   * @returns null if no target is known
   */
  next(home: Target | null): Target | null {
    if (this.newCount === 0 && home !== null && (this.isHomeNext || this.queue.length === 0)) {
      this.isHomeNext = false;
      return home;
    }
    const target = this.queue.shift() ?? null;
    if (target === null) return null;
    this.queue.push(target);
    if (this.newCount > 0) this.newCount--;
    this.isHomeNext = true;
    return target;
  }

  drop(target: Target): void {
    const at = this.queue.indexOf(target);
    if (at < 0) return;
    this.queue.splice(at, 1);
    if (at < this.newCount) this.newCount--;
  }

  clear(): void {
    this.queue = [];
    this.newCount = 0;
  }
}
