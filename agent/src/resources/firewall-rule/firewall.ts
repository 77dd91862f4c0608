import type { Machine } from '../provider/provider.ts';
import type { Body, Rule, Rules } from './rules.ts';

export type FirewallName = 'nftables' | 'ufw' | 'firewalld';

/** Rules of one resource, or of all resources, in one firewall. */
export type State<R> = {
  /** Rules that are in effect. */
  live: R;
  /** Rules that are loaded at boot. */
  saved: R;
};

/** A program that manages a machine's firewall, which may contain Muster's rules. */
export interface Firewall {
  readonly name: FirewallName;
  /** Reports whether Muster's rules can be read and changed. */
  isAvailable(): boolean;
  /**
   * Returns the rules that this firewall needs for a declaration.
   * @throws HostFailure for fields that the firewall does not support
   */
  wanted(body: Body): Rule[];
  /** Returns Muster's rules, by the name of their resource. */
  read(machine: Machine): Promise<State<Rules>>;
  /**
   * Replaces Muster's rules. The rules in effect are replaced on trial.
   * @throws HostFailure if the rules cut the agent's link, or the firewall refuses them
   */
  change(now: State<Rules>, next: State<Rules>, machine: Machine): Promise<void>;
}

export const isSame = (a: readonly Rule[] | null | undefined, b: readonly Rule[] | null | undefined): boolean =>
  JSON.stringify(a ?? []) === JSON.stringify(b ?? []);
