import type { Target } from './pin.ts';

/** Bounded, because anyone on the network can announce an orchestrator. */
const mostCandidates = 8;

const isSame = (a: Target, b: Target): boolean =>
  a.host === b.host && a.port === b.port && a.orchestrator_key === b.orchestrator_key;

/** Announced orchestrators that were not reached yet: new ones first, then all in turn. */
export class Candidates {
  /** The next one first. */
  private turns: Target[] = [];
  private fresh = 0;
  private homesTurn = true;

  /** Whether an announced orchestrator has not been tried yet. */
  get hasNew(): boolean {
    return this.fresh > 0;
  }

  /** @returns false for one that already waits for its first turn */
  add(target: Target): boolean {
    const at = this.turns.findIndex((each) => isSame(each, target));
    if (at >= 0 && at < this.fresh) return false;
    // Announced again, so somebody wants it tried now.
    if (at >= 0) this.turns.splice(at, 1);
    this.turns.splice(this.fresh++, 0, target);
    if (this.turns.length > mostCandidates) {
      this.turns.pop();
      this.fresh = Math.min(this.fresh, this.turns.length);
    }
    return true;
  }

  /**
   * The target to try now.
   * @param home the agent's known orchestrator, which takes turns with the announced ones
   * @returns null when there is none
   */
  next(home: Target | null): Target | null {
    if (this.fresh === 0 && home !== null && (this.homesTurn || this.turns.length === 0)) {
      this.homesTurn = false;
      return home;
    }
    const target = this.turns.shift() ?? null;
    if (target === null) return null;
    this.turns.push(target);
    if (this.fresh > 0) this.fresh--;
    this.homesTurn = true;
    return target;
  }

  drop(target: Target): void {
    const at = this.turns.indexOf(target);
    if (at < 0) return;
    this.turns.splice(at, 1);
    if (at < this.fresh) this.fresh--;
  }

  clear(): void {
    this.turns = [];
    this.fresh = 0;
  }
}
