import type { State } from '@muster/protocol/http';

type Entry = State['applied'][number];
export type AppliedEntry = Entry & { readonly standing: 'applied' | 'unapplied' | 'pending_removal' };

export interface AppliedModule {
  readonly module: string;
  readonly entries: readonly AppliedEntry[];
}

/**
 * Groups the applied state by module, sorted by name. In each module, resources that are unapplied or pending removal
 * come first.
 */
export function appliedByModule({ applied, unapplied, pending_removals }: State): readonly AppliedModule[] {
  const groups = new Map<string, AppliedEntry[]>();
  const take = (entries: readonly Entry[], standing: AppliedEntry['standing']) => {
    for (const entry of entries) {
      const group = groups.get(entry.module) ?? [];
      if (group.length === 0) groups.set(entry.module, group);
      group.push({ ...entry, standing });
    }
  };
  take(unapplied, 'unapplied');
  take(pending_removals, 'pending_removal');
  take(applied, 'applied');
  return [...groups].map(([module, entries]) => ({ module, entries })).sort((a, b) => (a.module < b.module ? -1 : 1));
}
